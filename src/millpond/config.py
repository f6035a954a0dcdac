"""Settings from file, environment, flags and code, merged here and only here.

`[tool.millpond]` in pyproject.toml or a millpond.toml (the nearest folder upwards) < `MILLPOND_*` variables
< flags < explicit code. Each value remembers where it came from. What is not known is an error that names
the nearest valid key; a password in a URL is never shown.
"""

from __future__ import annotations

import difflib
import os
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from millpond.errors import OptionError
from millpond.units import seconds

PREFIX = "MILLPOND_"
FILES = ("millpond.toml", "pyproject.toml")  # the first one found in a folder counts
_OTHERS = ("MILLPOND_POOL_", "MILLPOND_TEST_")  # read elsewhere
# What Kubernetes sets in every container beside a service called millpond; none of it is meant for us.
_KUBERNETES = re.compile(r"MILLPOND_(\w+_)?(SERVICE_(HOST|PORT\w*)|PORT(_[0-9]+_\w+)?)", re.ASCII)
_APP = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")


class Setting(NamedTuple):
    """A value and where it came from: a file, a variable, a flag, code, or the default."""

    value: Any
    source: str
    folder: Path | None = None  # of the file it was read from

    @property
    def shown(self) -> Any:
        """The value as it may be printed."""
        return hide_password(self.value) if isinstance(self.value, str) else self.value


class Key(NamedTuple):
    """What can be set."""

    read: Callable[[Any, str], Any]  # (value, where) -> value, or OptionError
    default: Any
    meaning: str


def _app(value: Any, where: str) -> str:
    if not isinstance(value, str) or not _APP.fullmatch(value):
        raise OptionError(f"{where} must be 'module:attribute', such as 'jobs:app', not {value!r:.80}")
    return value


def _store(value: Any, where: str) -> str:
    if not isinstance(value, str) or "://" not in value:
        shown = hide_password(value) if isinstance(value, str) else value
        raise OptionError(f"{where} must be a URL, such as 'sqlite:///jobs.db', not {shown!r:.80}")
    try:
        urlsplit(value).port  # noqa: B018 - reading it is what checks it
    except ValueError as error:
        raise OptionError(f"{where} is not a valid URL: {error}") from None
    return value


def _duration(value: Any, where: str) -> float:
    return seconds(value, name=where)


KEYS: Mapping[str, Key] = {
    "app": Key(_app, None, "where the app is: module:attribute"),
    "store": Key(_store, None, "URL of the store; an app that names its own store wins"),
    "retention_completed": Key(_duration, 7 * 86_400.0, "how long completed jobs are kept"),
    "retention_cancelled": Key(_duration, 7 * 86_400.0, "how long cancelled jobs are kept"),
    "retention_dead": Key(_duration, 90 * 86_400.0, "how long dead jobs are kept"),
}


class Config:
    """The settings in force. A later layer covers an earlier one and never changes it."""

    def __init__(self, settings: Mapping[str, Setting], file: Path | None = None) -> None:
        self.settings = settings
        self.file = file  # the file that was read, if there is one

    def __getitem__(self, key: str) -> Any:
        return self.settings[key].value

    def source(self, key: str) -> str:
        """Where the value of a key came from."""
        return self.settings[key].source

    def covered(self, values: Mapping[str, Any], source: Callable[[str], str]) -> Config:
        """These settings with a layer on top; `source` says where a key of it came from."""
        layer = {key: Setting(_read(key, value, source(key)), source(key)) for key, value in values.items()}
        return Config({**self.settings, **layer}, self.file)


def load(
    flags: Mapping[str, Any] | None = None,
    explicit: Mapping[str, Any] | None = None,
    *,
    environment: Mapping[str, str] | None = None,
    folder: Path | None = None,
) -> Config:
    """Every setting. In `flags` and `explicit`, None means that nothing was said."""
    file = find_file(Path.cwd() if folder is None else folder)
    defaults = {key: Setting(entry.default, "default") for key, entry in KEYS.items()}
    config = Config({**defaults, **(_from_file(file) if file else {})}, file)
    config = config.covered(_from_environment(os.environ if environment is None else environment), variable)
    config = config.covered(_said(flags), flag)
    return config.covered(_said(explicit), lambda _: "code")


def variable(key: str) -> str:
    """The environment variable of a key."""
    return PREFIX + key.upper()


def flag(key: str) -> str:
    """The flag of a key."""
    return "--" + key.replace("_", "-")


def find_file(folder: Path) -> Path | None:
    """The nearest file with settings: in this folder or one above it."""
    for place in (folder, *folder.parents):
        for name in FILES:
            path = place / name
            if path.is_file() and (name != "pyproject.toml" or _table(path) is not None):
                return path
    return None


def hide_password(url: str) -> str:
    """A URL without its passwords. Hides too much rather than too little."""
    url = re.sub(r"://([^:/?#@\s]*):\S*@", r"://\1:***@", url)
    return re.sub(r"([?&][a-z_]*(?:password|secret|token)=)[^&#\s]*", r"\1***", url, flags=re.IGNORECASE)


# --- layers ----------------------------------------------------------------------------------------------
def _said(values: Mapping[str, Any] | None) -> dict[str, Any]:
    return {key: value for key, value in (values or {}).items() if value is not None}


def _read(key: str, value: Any, where: str) -> Any:
    if key not in KEYS:
        raise OptionError(f"{where} is not a setting of Millpond{_nearest(key, KEYS)}")
    return KEYS[key].read(value, where)


def _from_environment(environment: Mapping[str, str]) -> dict[str, str]:
    found = {}
    known = {variable(key): key for key in KEYS}
    for name, text in environment.items():
        if not name.startswith(PREFIX) or name.startswith(_OTHERS) or _KUBERNETES.fullmatch(name):
            continue
        if name not in known:
            raise OptionError(f"the variable {name} is not one of Millpond{_nearest(name, known)}")
        if text.strip():
            found[known[name]] = text.strip()
    return found


def _from_file(path: Path) -> dict[str, Setting]:
    settings = {}
    for key, value in (_table(path) or {}).items():
        if key not in KEYS:
            raise OptionError(f"{path}: {key!r} is not a setting of Millpond{_nearest(key, KEYS)}")
        read = KEYS[key].read(value, f"{path}: {key}")
        settings[key] = Setting(_anchored(read, path) if key == "store" else read, str(path), path.parent)
    return settings


def _table(path: Path) -> dict[str, Any] | None:
    """What a file says about Millpond; None if it does not mention it."""
    try:
        with path.open("rb") as file:
            content: Any = tomllib.load(file)
    except OSError as error:
        raise OptionError(f"{path} cannot be read: {error.strerror}") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise OptionError(f"{path} is not valid TOML: {error}") from error
    if path.name == "pyproject.toml":
        tool = content.get("tool", {})
        content = tool.get("millpond") if isinstance(tool, dict) else None
    if content is None or isinstance(content, dict):
        return content
    raise OptionError(f"{path}: tool.millpond must be a table: write [tool.millpond]")


def _anchored(url: str, path: Path) -> str:
    """An SQLite file named in a settings file lies beside that file, wherever the program was started."""
    relative = re.fullmatch(r"sqlite:///([^/].*)", url)
    return url if relative is None else f"sqlite:///{path.parent / relative[1]}"


def _nearest(name: str, known: Iterable[str]) -> str:
    close = difflib.get_close_matches(name, list(known), 1)
    return f", did you mean {close[0]!r}?" if close else f"; there are: {', '.join(sorted(known))}"
