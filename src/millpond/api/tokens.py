"""Tokens and sessions of the HTTP API: who shows what, compared in constant time.

Tokens are kept as digests. A session is a signed cookie whose key comes from the token it was made with: it
survives a restart of the server, and ends when that token is replaced. Never writes a token anywhere.
"""

from __future__ import annotations

import hmac
import secrets
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from millpond.errors import OptionError
from millpond.rules.access import Scope, Shown

SHORTEST, LONGEST = 16, 1_000  # characters of a token
SESSION = 12 * 3600.0  # seconds a login lasts
MOST_ENDED = 10_000  # sessions that were logged out and are remembered until they expire
MOST_ADDRESSES = 10_000
MOST_TRIES, PER = 10, 60.0  # wrong logins from one address, in so many seconds


class Token(NamedTuple):
    """A token that this server takes."""

    scope: Scope
    digest: bytes
    expires_at: float | None = None  # seconds since 1970


class Caller(NamedTuple):
    """Who asks, as far as it was shown."""

    scope: Scope = "none"
    shown: Shown = "nothing"
    how: str = "none"  # token or session
    expires_at: float | None = None


NOBODY = Caller()
Source = Callable[[], Sequence[Token]]


def token(scope: Scope, text: Any, expires_at: float | None = None) -> Token:
    """A token from its text, or OptionError if it is no good."""
    if not isinstance(text, str) or not SHORTEST <= len(text) <= LONGEST:
        raise OptionError(
            f"the {scope} token must be text of {SHORTEST} to {LONGEST} characters: "
            "make one with python -c 'import secrets; print(secrets.token_urlsafe(32))'"
        )
    if not text.isascii() or not text.isprintable() or " " in text:
        raise OptionError(f"the {scope} token must be of visible ASCII characters without spaces")
    return Token(scope, sha256(text.encode()).digest(), expires_at)


class Keyring:
    """Every token of a server, wherever it comes from, and the sessions made with them."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._ended: OrderedDict[str, float] = OrderedDict()

    def look(self, text: str, now: float) -> Caller:
        """Whose token this is. Compares with every one of them, whatever the first says."""
        given = sha256(text.encode(errors="surrogateescape")).digest()
        found = None
        for known in self._source():
            if hmac.compare_digest(known.digest, given):
                found = known
        if found is None:
            return Caller(shown="wrong", how="token")
        if found.expires_at is not None and found.expires_at <= now:
            return Caller(shown="expired", how="token", expires_at=found.expires_at)
        return Caller(found.scope, "right", "token", found.expires_at)

    # --- sessions ------------------------------------------------------------------------------------
    def open_session(self, text: str, now: float) -> tuple[Caller, str]:
        """The caller whose token this is, and the cookie of a session; an empty one if it is not right."""
        caller = self.look(text, now)
        if caller.shown != "right":
            return caller, ""
        ends = min(now + SESSION, caller.expires_at or now + SESSION)
        said = f"{caller.scope}.{int(ends)}.{secrets.token_hex(8)}"
        key = _session_key(sha256(text.encode()).digest())
        cookie = f"{said}.{_signature(key, said)}"
        return caller._replace(how="session", expires_at=float(int(ends))), cookie

    def look_session(self, cookie: str, now: float) -> Caller:
        """Whose session this is."""
        said, _, signature = cookie.rpartition(".")
        parts = said.split(".")
        wrong = Caller(shown="wrong", how="session")
        if len(cookie) > 200 or len(parts) != 3 or not cookie.isascii() or not parts[1].isdigit():
            return wrong
        signed = None
        for known in self._source():
            is_it = hmac.compare_digest(_signature(_session_key(known.digest), said), signature)
            if is_it and known.scope == parts[0]:
                signed = known
        if signed is None or parts[2] in self._ended:
            return wrong
        ends = min(float(parts[1]), signed.expires_at or float(parts[1]))
        if ends <= now:
            return Caller(shown="expired", how="session", expires_at=ends)
        return Caller(signed.scope, "right", "session", ends)

    def end_session(self, cookie: str, now: float) -> None:
        """Log out: the cookie counts no more."""
        if self.look_session(cookie, now).shown != "right":
            return
        _, ends, name, _ = cookie.split(".")
        self._ended[name] = float(ends)
        for old in [key for key, end in self._ended.items() if end <= now]:
            del self._ended[old]
        while len(self._ended) > MOST_ENDED:
            self._ended.popitem(last=False)


def _session_key(digest: bytes) -> bytes:
    return sha256(b"millpond session " + digest).digest()


def _signature(key: bytes, said: str) -> str:
    return hmac.new(key, said.encode(errors="replace"), sha256).hexdigest()


class Tries:
    """Wrong logins by address: who has tried too often must wait."""

    def __init__(self) -> None:
        self._tries: OrderedDict[str, list[float]] = OrderedDict()

    def may(self, address: str, now: float) -> bool:
        """May this address try once more?"""
        recent = [at for at in self._tries.get(address, ()) if at > now - PER]
        return len(recent) < MOST_TRIES

    def failed(self, address: str, now: float) -> None:
        """It tried, and was wrong."""
        recent = [at for at in self._tries.pop(address, ()) if at > now - PER]
        self._tries[address] = [*recent[-MOST_TRIES:], now]
        while len(self._tries) > MOST_ADDRESSES:
            self._tries.popitem(last=False)
