"""The dashboard as files: built by `make web` from `web/`, packed into the wheel, served by the API.

Nothing here is imported by the rest; it says where the files are.
"""

from importlib.resources import files
from importlib.resources.abc import Traversable


def static() -> Traversable:
    """The folder with index.html and what it needs; it does not exist where the dashboard was not built."""
    return files("millpond").joinpath("web", "static")
