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
from ipaddress import ip_network
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from millpond.errors import OptionError
from millpond.options import check_queue, check_whole, duration
from millpond.pool_settings import MOST_WORKERS
from millpond.units import shown, size_in_bytes

PREFIX = "MILLPOND_"
FILES = ("millpond.toml", "pyproject.toml")  # the first one found in a folder counts
_OTHERS = ("MILLPOND_POOL_", "MILLPOND_TEST_")  # read elsewhere
# What Kubernetes sets in every container beside a service called millpond; none of it is meant for us.
_KUBERNETES = re.compile(r"MILLPOND_(\w+_)?(SERVICE_(HOST|PORT\w*)|PORT(_[0-9]+_\w+)?)", re.ASCII)
_APP = re.compile(r"[^\W\d]\w*(\.[^\W\d]\w*)*:[^\W\d]\w*(\.[^\W\d]\w*)*")
_ADDRESS = re.compile(r"(?P<host>\[[0-9A-Fa-f:.%]+\]|[^\s:/\[\]]+):(?P<port>[0-9]{1,5})", re.ASCII)
_NAME = re.compile(r"[a-z0-9]([a-z0-9.-]{0,251}[a-z0-9])?")
# Each takes all that it can and gives nothing back: text of any length and making may come here.
_BEHIND_SCHEME = re.compile(r"://\S++")
_USER = re.compile(r"(?<=://)[^:/?#@\s]*+:")
_HIDDEN_PARAMETER = re.compile(r"([?&][a-z_]{0,64}(?:password|secret|token|listen)=)[^&#\s]*+", re.IGNORECASE)
_ARGUMENT = re.compile(r"[A-Za-z0-9_-]{2,64}")
FLAGS = {
    "queues": "--queue",
    "dashboard": "--listen",
    "dashboard_hosts": "--host-name",
    "trusted_proxies": "--trusted-proxy",
}  # flags that are not called like their keys
LEVELS = ("debug", "info", "warning", "error")
OFF = "off"
SHORTEST_LEASE, LONGEST_LEASE = 1.0, 3600.0

SHORTEST_TOKEN = 16
_YES, _NO = ("true", "yes", "on", "1"), ("false", "no", "off", "0")


class Unprinted(str):
    """Text that is never printed."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "'***'"


class Setting(NamedTuple):
    """A value and where it came from: a file, a variable, a flag, code, or the default."""

    value: Any
    source: str
    folder: Path | None = None  # of the file it was read from

    @property
    def shown(self) -> Any:
        """The value as it may be printed."""
        if isinstance(self.value, Unprinted):
            return "***"
        return hide_password(self.value) if isinstance(self.value, str) else self.value


class Key(NamedTuple):
    """What can be set."""

    read: Callable[[Any, str], Any]  # (value, where) -> value, or OptionError
    default: Any
    meaning: str


def _app(value: Any, where: str) -> str:
    if not isinstance(value, str) or not _APP.fullmatch(value):
        raise OptionError(f"{where} must be 'module:attribute', such as 'jobs:app', not {shown(value)}")
    return value


def _store(value: Any, where: str) -> str:
    if not isinstance(value, str) or "://" not in value:
        safe = hide_password(value) if isinstance(value, str) else value
        raise OptionError(f"{where} must be a URL, such as 'sqlite:///jobs.db', not {shown(safe)}")
    try:
        for place in urlsplit(value).netloc.rpartition("@")[2].split(","):  # some have several hosts
            urlsplit(f"//{place}").port  # noqa: B018 - reading it is what checks it
    except ValueError as error:
        raise OptionError(f"{where} is not a valid URL: {error}") from None
    return value


def _duration(value: Any, where: str) -> float:
    return duration(value, where)


def _lease(value: Any, where: str) -> float:
    """Shorter than a second and a busy machine alone would make a node look dead."""
    lease = duration(value, where)
    if not SHORTEST_LEASE <= lease <= LONGEST_LEASE:
        raise OptionError(f"{where} must be from 1 second to 1 hour, such as '15s', not {shown(value)}")
    return lease


def _queues(value: Any, where: str) -> tuple[str, ...]:
    """A list of names; in a variable, names with commas between them."""
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list | tuple):
        raise OptionError(f"{where} must be a list of queues, such as ['images', 'mail'], not {shown(value)}")
    try:
        return tuple(
            dict.fromkeys(check_queue(name.strip() if isinstance(name, str) else name) for name in names)
        )
    except OptionError as error:
        raise OptionError(f"{where}: {error}") from None


def _workers(value: Any, where: str) -> int:
    number = int(value) if isinstance(value, str) and value.isascii() and value.isdigit() else value
    return check_whole(number, where, 1, MOST_WORKERS)


def _health(value: Any, where: str) -> str | None:
    if isinstance(value, str) and value.lower() == OFF:
        return None
    match = _ADDRESS.fullmatch(value) if isinstance(value, str) else None
    if match is None or int(match["port"]) > 65_535:
        raise OptionError(
            f"{where} must be HOST:PORT, such as '127.0.0.1:8080', or 'off', not {shown(value)}"
        )
    return str(value)


def _listen(value: Any, where: str) -> str:
    found = _health(value, where)
    if found is None:
        raise OptionError(f"{where} must be HOST:PORT, such as '127.0.0.1:8640', not {shown(value)}")
    return found


def _names(value: Any, where: str) -> tuple[str, ...]:
    """Names of hosts; in a variable, with commas between them."""
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise OptionError(
            f"{where} must be a list of names, such as ['jobs.example.com'], not {shown(value)}"
        )
    found = tuple(dict.fromkeys(name.strip().lower() for name in names if name.strip()))
    for name in found:
        if not _NAME.fullmatch(name):
            raise OptionError(
                f"{where} must name hosts without port, such as 'jobs.example.com', not {shown(name)}"
            )
    return found


def _networks(value: Any, where: str) -> tuple[str, ...]:
    """Addresses or networks; in a variable, with commas between them."""
    given = value.split(",") if isinstance(value, str) else value
    if not isinstance(given, list | tuple) or not all(isinstance(name, str) for name in given):
        raise OptionError(
            f"{where} must be a list of addresses, such as ['10.0.0.5', '10.1.0.0/16'], not {shown(value)}"
        )
    try:
        names = [name.strip() for name in given if name.strip()]
        return tuple(dict.fromkeys(str(ip_network(name, strict=False)) for name in names))
    except ValueError as error:
        raise OptionError(f"{where} must name addresses or networks: {error}") from None


def check_redact(value: Any, where: str) -> tuple[str, ...]:
    """Names of arguments; in a variable, with commas between them."""
    names = value.split(",") if isinstance(value, str) else value
    if not isinstance(names, list | tuple) or not all(isinstance(name, str) for name in names):
        raise OptionError(f"{where} must be a list of names, such as ['iban', 'phone'], not {shown(value)}")
    found = tuple(dict.fromkeys(name.strip() for name in names if name.strip()))
    for name in found:
        if not _ARGUMENT.fullmatch(name):
            raise OptionError(
                f"{where} must name arguments by letters, digits, '_' and '-', not {shown(name)}"
            )
    return found


def _webhook(value: Any, where: str) -> Unprinted:
    """Such a URL often is the secret itself."""
    if not isinstance(value, str) or not value.startswith(("http://", "https://")):
        raise OptionError(f"{where} must be a URL, such as 'https://alerts.example.com/millpond'")
    return Unprinted(value)


def _token(value: Any, where: str) -> Unprinted:
    if not isinstance(value, str) or not SHORTEST_TOKEN <= len(value) <= 1000:
        raise OptionError(f"{where} must be text of {SHORTEST_TOKEN} to 1000 characters")
    return Unprinted(value)


def _yes_or_no(value: Any, where: str) -> bool:
    if isinstance(value, bool):
        return value
    if not isinstance(value, str) or value.lower() not in (*_YES, *_NO):
        raise OptionError(f"{where} must be true or false, not {shown(value)}")
    return value.lower() in _YES


def _memory(value: Any, where: str) -> int:
    size = size_in_bytes(value, name=where)
    if size < 1:
        raise OptionError(f"{where} must be a size above zero, such as '8GB', not {shown(value)}")
    return size


def _cores(value: Any, where: str) -> float:
    try:
        cores = float(value)
    except (TypeError, ValueError, OverflowError):
        cores = 0.0
    if isinstance(value, bool) or not 0.1 <= cores <= 100_000:
        raise OptionError(f"{where} must be a number of cores, such as 4 or 0.5, not {shown(value)}")
    return cores


def _one_of(*choices: str) -> Callable[[Any, str], str]:
    def read(value: Any, where: str) -> str:
        if not isinstance(value, str) or value.lower() not in choices:
            raise OptionError(f"{where} must be one of {', '.join(choices)}, not {shown(value)}")
        return value.lower()

    return read


KEYS: Mapping[str, Key] = {
    "app": Key(_app, None, "where the app is: module:attribute"),
    "store": Key(_store, None, "URL of the store; for an app that names none"),
    "queues": Key(_queues, (), "the queues a node serves; none named: every queue of the app"),
    "grace": Key(_duration, 25.0, "how long running jobs may finish when a node is told to stop"),
    "lease": Key(_lease, 15.0, "how long a silent node keeps its jobs before others take them"),
    "unknown_after": Key(_duration, 86_400.0, "how long a job waits for a node that knows its task"),
    "memory": Key(_memory, None, "what the jobs of a node may use together; without it: all"),
    "cpus": Key(_cores, None, "cores that its jobs may declare together; without it: all"),
    "health": Key(_health, None, "where a node answers probes, /metrics and /scale: HOST:PORT, or off"),
    "health_token": Key(_token, None, "what a reader of /metrics and /scale must show"),
    "health_hosts": Key(_names, (), "names by which the health port may be asked, beside addresses"),
    "max_workers": Key(_workers, None, "the most workers of all pools of a node together"),
    "alert_webhook": Key(_webhook, None, "the URL that alerts are posted to"),
    "alert_networks": Key(_networks, (), "addresses inside that alerts may be posted to, too"),
    "open_metrics": Key(_yes_or_no, False, "whether /metrics and /scale are shown without a token"),
    "dashboard": Key(_listen, "127.0.0.1:8640", "where the dashboard and the HTTP API are: HOST:PORT"),
    "dashboard_token": Key(_token, None, "the admin token of the dashboard; none: a generated one"),
    "dashboard_read_token": Key(_token, None, "a token that may look at everything and change nothing"),
    "dashboard_hosts": Key(_names, (), "names by which the dashboard may be asked, beside localhost"),
    "trusted_proxies": Key(_networks, (), "proxies whose word about who asks the dashboard is taken"),
    "behind_tls": Key(_yes_or_no, False, "whether something before the dashboard speaks TLS"),
    "log_format": Key(_one_of("text", "json"), "text", "what a node's log lines look like"),
    "log_level": Key(_one_of(*LEVELS), "info", "the least important log lines that are written"),
    "redact": Key(check_redact, (), "names of arguments that are shown as ***, beside those that are known"),
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
    file = find_file(folder or _here())
    defaults = {key: Setting(entry.default, "default") for key, entry in KEYS.items()}
    config = Config({**defaults, **(_from_file(file) if file else {})}, file)
    config = config.covered(_from_environment(os.environ if environment is None else environment), variable)
    config = config.covered(_said(flags), flag)
    return config.covered(_said(explicit), lambda _: "code")


def _here() -> Path:
    try:
        return Path.cwd()
    except FileNotFoundError:  # the folder we are in was deleted: then there is no file to look for in it
        return Path("/")


def variable(key: str) -> str:
    """The environment variable of a key."""
    return PREFIX + key.upper()


def flag(key: str) -> str:
    """The flag of a key."""
    return FLAGS.get(key, "--" + key.replace("_", "-"))


def health_address(text: str) -> tuple[str, int]:
    """The host and port of a checked `health` setting, as `bind` wants them."""
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def find_file(folder: Path) -> Path | None:
    """The nearest file with settings: in this folder or one above it."""
    for place in (folder, *folder.parents):
        for name in FILES:
            path = place / name
            if path.is_file() and (name != "pyproject.toml" or _table(path) is not None):
                return path
    return None


def hide_password(url: str) -> str:
    """A URL without its passwords. Hides too much rather than too little, in time linear in its length."""
    if "://" in url:
        url = _BEHIND_SCHEME.sub(_without_password, url)
    return _HIDDEN_PARAMETER.sub(r"\1***", url)


def _without_password(found: re.Match[str]) -> str:
    """What follows `://` up to the next space: all that is between a `user:` and the last `@` is hidden."""
    text, last, at = found[0], found[0].rfind("@"), 0
    while (at := text.find("://", at)) >= 0:
        user = _USER.match(text, at + 3)
        if user is not None and user.end() <= last:
            return f"{text[: user.end()]}***{text[last:]}"
        at += 3
    return text


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
