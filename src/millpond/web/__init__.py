"""The dashboard as files: built by `make web` from `web/`, packed into the wheel, served by the API.

Nothing here is imported by the rest; it says where the files are.
"""

from importlib.resources import files
from importlib.resources.abc import Traversable

NOT_BUILT = (
    "this installation of Millpond came without the dashboard's page (the HTTP API works): install a package "
    "that was built with it, or run `make web` in the source tree and start again"
)


def static() -> Traversable:
    """The folder with index.html and what it needs; it does not exist where the dashboard was not built."""
    return files("millpond").joinpath("web", "static")


def is_built() -> bool:
    """Is there a page to serve?"""
    return static().joinpath("index.html").is_file()
