"""The file with the generated tokens: made on first use, readable by its owner alone, followed as it changes.

It lies under XDG_STATE_HOME, else ~/.local/state. A file that others may read or that is not ours is refused.
Replacing the tokens in it ends the old ones within a second, without a restart.
"""

from __future__ import annotations

import json
import os
import secrets
import stat
import time
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from millpond.api.security.tokens import Token, token
from millpond.errors import OptionError
from millpond.rules.http_access import Scope

NAME = "dashboard.json"
LIFE = 90 * 86_400.0  # seconds a generated token is taken
LOOK = 1.0  # seconds between two looks at the file
SCOPES: tuple[Scope, ...] = ("admin", "read")


def default_path() -> Path:
    """Where the tokens of this user are."""
    home = os.environ.get("XDG_STATE_HOME", "")
    place = Path(home) if home.startswith("/") else Path.home() / ".local" / "state"
    return place / "millpond" / NAME


class TokenFile:
    """One file with an admin and a read token."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._tokens: tuple[Token, ...] = ()
        self._seen: tuple[int, int, int] | None = None
        self._look_at = 0.0

    def ensure(self, now: float | None = None) -> None:
        """Make the file if it is not there; new tokens in place of those that have expired."""
        moment = time.time() if now is None else now
        found = self._read() if self.path.exists() else {}
        fresh: dict[str, Any] = {scope: found.get(scope) for scope in SCOPES}
        for scope in SCOPES:
            if not _is_good(fresh[scope], moment):
                fresh[scope] = _generated(moment)
        if fresh != found:
            self._write(fresh)
        self._load()

    def renew(self) -> None:
        """Replace both tokens: whoever used the old ones must log in again."""
        now = time.time()
        self._write({scope: _generated(now) for scope in SCOPES})
        self._load()

    def text(self, scope: Scope) -> str:
        """A token, to be shown to the owner of the file."""
        return str(self._read()[scope]["token"])

    def __call__(self) -> Sequence[Token]:
        """The tokens as they are now; the file is looked at once a second at most."""
        now = time.monotonic()
        if now >= self._look_at:
            self._look_at = now + LOOK
            if self._mark() != self._seen:
                self._load()
        return self._tokens

    def _load(self) -> None:
        """Read the tokens. From a file that is gone or spoilt come none: nobody gets in by breaking it."""
        self._seen = self._mark()
        try:
            entries = self._read()
            self._tokens = tuple(
                token(scope, entries[scope]["token"], _instant(entries[scope].get("expires_at")))
                for scope in SCOPES
                if scope in entries
            )
        except (OSError, OptionError, LookupError, TypeError, AttributeError):
            self._tokens = ()

    def _mark(self) -> tuple[int, int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size

    def _read(self) -> dict[str, Any]:
        try:
            with self.path.open("rb") as file:
                _refuse_shared(self.path, os.fstat(file.fileno()))
                content = json.loads(file.read(100_000))
        except (OSError, ValueError) as error:
            if isinstance(error, OptionError):
                raise
            raise OptionError(f"the token file {self.path} cannot be read: {error}; delete it") from None
        if not isinstance(content, dict):
            raise OptionError(f"the token file {self.path} does not hold tokens: delete it")
        return content

    def _write(self, content: dict[str, Any]) -> None:
        """Put the file in its place whole, and never readable by others, not even for a moment."""
        beside = self.path.with_name(f".{NAME}.{secrets.token_hex(4)}")
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            descriptor = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(descriptor, "w") as file:
                json.dump(content, file, indent=2)
                file.write("\n")
            beside.replace(self.path)
        except OSError as error:
            raise OptionError(
                f"the token file {self.path} cannot be written: {error.strerror}; "
                "set XDG_STATE_HOME to a folder of yours, or give the tokens as settings"
            ) from None


def _refuse_shared(path: Path, found: os.stat_result) -> None:
    if found.st_mode & (stat.S_IRWXG | stat.S_IRWXO):
        raise OptionError(f"the token file {path} can be read by others: chmod 600 it, or delete it")
    if found.st_uid not in (os.getuid(), 0):
        raise OptionError(f"the token file {path} belongs to somebody else: delete it")


def _generated(now: float) -> dict[str, str]:
    ends = datetime.fromtimestamp(now + LIFE, UTC).isoformat(timespec="seconds").replace("+00:00", "Z")
    return {"token": secrets.token_urlsafe(32), "expires_at": ends}


def _is_good(entry: Any, now: float) -> bool:
    if not isinstance(entry, dict) or not isinstance(entry.get("token"), str):
        return False
    ends = _instant(entry.get("expires_at"))
    return ends is None or ends > now


def _instant(text: object) -> float | None:
    """An instant in the file; what cannot be read is long over, so that no mistake makes a token eternal."""
    if text is None:
        return None
    try:
        return datetime.fromisoformat(str(text)).timestamp()
    except ValueError:
        return 0.0
