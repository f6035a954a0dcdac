"""What an error answer of a Redis or Valkey server means: which of our errors it is, or what to try next.

After any of them nothing has happened: the server said so itself. A broken connection is not decided here.
"""

from __future__ import annotations

from typing import Any

from millpond.errors import StoreBusy, StoreError, StoreRefused, StoreUnavailable

BUSY = ("BUSY", "LOADING", "TRYAGAIN")
UNAVAILABLE = ("OOM", "MISCONF", "READONLY", "MASTERDOWN", "CLUSTERDOWN", "NOREPLICAS", "UNBLOCKED")
REFUSED = ("NOPERM", "NOAUTH", "WRONGPASS")
OUT_OF_PLACE = ("CLUSTERDOWN", "READONLY", "MASTERDOWN")
CODES = {  # the driver takes the code off the errors that it knows
    "BusyLoadingError": "LOADING",
    "TryAgainError": "TRYAGAIN",
    "OutOfMemoryError": "OOM",
    "ReadOnlyError": "READONLY",
    "MasterDownError": "MASTERDOWN",
    "ClusterDownError": "CLUSTERDOWN",
    "NoScriptError": "NOSCRIPT",
    "NoPermissionError": "NOPERM",
    "AuthenticationError": "NOAUTH",
    "AuthenticationWrongNumberOfArgsError": "NOAUTH",
    "AuthorizationError": "NOAUTH",
    "MovedError": "MOVED",
    "AskError": "ASK",
}


class NoFunctions(Exception):
    """The server has no functions for us."""


class NoRoom(Exception):
    """The server has no memory left for a function."""


class NoFlags(Exception):
    """The server knows no flags of scripts: it is older than Redis 7."""


class Unknown(Exception):
    """The server does not know the script yet."""


class Moved(Exception):
    """Another node of the cluster has our keys; `asking` if only for this once."""

    def __init__(self, asking: Any) -> None:
        super().__init__()
        self.asking = asking


def translated(url: str, error: Exception) -> Exception:
    """What an error answer means."""
    said, code = str(error), _code(error)
    if code == "NOSCRIPT":
        return Unknown()
    if "compiling script" in said and "near '#'" in said:
        return NoFlags()
    if _is_about_functions(said):
        return Unknown() if "not found" in said else NoFunctions()
    if code in ("MOVED", "ASK"):
        return Moved(error if code == "ASK" else None)
    if code in BUSY:
        return StoreBusy(f"{url} is busy: {said}; nothing happened")
    if code in UNAVAILABLE:
        return StoreUnavailable(f"{url} does not take writes now: {said}; nothing happened")
    if code in REFUSED or "permission" in said:
        return StoreRefused(f"{url} refused us: {said}; change the user's rights or the password in the URL")
    return StoreError(f"{url}: {type(error).__name__}: {said}")


def is_out_of_place(error: Exception) -> bool:
    """A node of a cluster that is cut off from the others, or is no master any more: another one may have
    taken its keys over."""
    return _code(error) in OUT_OF_PLACE


def is_about_memory(error: BaseException) -> bool:
    """The server has reached its `maxmemory`."""
    return _code(error) == "OOM"


def _code(error: BaseException) -> str:
    return CODES.get(type(error).__name__, str(error).partition(" ")[0])


def _is_about_functions(said: str) -> bool:
    """The function is not there, the server knows no functions, or we may not use them."""
    lower = said.lower()
    if "function not found" in lower:
        return True
    return ("fcall" in lower or "function" in lower) and ("unknown command" in lower or "permission" in lower)
