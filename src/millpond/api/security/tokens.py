"""Tokens and sessions of the HTTP API: who shows what, compared in constant time.

Tokens are kept as digests. A session is a signed cookie whose key comes from the token it was made with: it
survives a restart of the server, and ends when that token is replaced. Never writes a token anywhere.
"""

from __future__ import annotations

import hmac
import logging
import secrets
from collections import OrderedDict
from collections.abc import Callable, Sequence
from hashlib import sha256
from typing import Any, NamedTuple

from millpond.api.problems import Problem
from millpond.errors import OptionError
from millpond.rules.http_access import Scope, Shown, counted_as

logger = logging.getLogger("millpond.api")
SHORTEST, LONGEST = 16, 1_000  # characters of a token
SESSION = 12 * 3600.0  # seconds a login lasts
MOST_ADDRESSES = 10_000
MOST_TRIES, PER = 10, 60.0  # wrong tokens from one address, in so many seconds


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
    session: str = ""  # its name, if there is one


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

    def __init__(
        self, source: Source, realm: str = "", has_ended: Callable[[str], bool] | None = None
    ) -> None:
        """Sessions are good in one `realm`, such as one store: the same token may open several dashboards,
        and what was logged out of one of them must not be a key to another."""
        self._source = source
        self._realm = sha256(realm.encode(errors="replace")).digest()
        self._has_ended = has_ended or (lambda _: False)

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
        key = self._session_key(sha256(text.encode()).digest())
        cookie = f"{said}.{_signature(key, said)}"
        name = said.rpartition(".")[2]
        return caller._replace(how="session", expires_at=float(int(ends)), session=name), cookie

    def look_session(self, cookie: str, now: float) -> Caller:
        """Whose session this is."""
        said, _, signature = cookie.rpartition(".")
        parts = said.split(".")
        wrong = Caller(shown="wrong", how="session")
        if len(cookie) > 200 or len(parts) != 3 or not cookie.isascii() or not parts[1].isdigit():
            return wrong
        signed = None
        for known in self._source():
            is_it = hmac.compare_digest(_signature(self._session_key(known.digest), said), signature)
            if is_it and known.scope == parts[0]:
                signed = known
        if signed is None or self._has_ended(parts[2]):
            return wrong
        ends = min(float(parts[1]), signed.expires_at or float(parts[1]))
        if ends <= now:
            return Caller(shown="expired", how="session", expires_at=ends)
        return Caller(signed.scope, "right", "session", ends, parts[2])

    def _session_key(self, digest: bytes) -> bytes:
        return sha256(b"millpond session " + self._realm + digest).digest()


def _signature(key: bytes, said: str) -> str:
    return hmac.new(key, said.encode(errors="replace"), sha256).hexdigest()


class Tries:
    """Wrong tokens by address. The right one is always taken: several people may come from one address, and a
    stranger among them must not lock the others out."""

    def __init__(self) -> None:
        self._tries: OrderedDict[str, list[float]] = OrderedDict()

    def refuse(self, address: str, now: float) -> None:
        """A wrong token came from there: a Problem if it was one too many."""
        key = counted_as(address)
        recent = [at for at in self._tries.pop(key, ()) if at > now - PER]
        self._tries[key] = [*recent[-MOST_TRIES:], now]
        while len(self._tries) > MOST_ADDRESSES:
            self._tries.popitem(last=False)
        if len(recent) == MOST_TRIES:
            logger.warning("Too many wrong tokens came from %s: somebody guesses, or has an old one", key)
        if len(recent) >= MOST_TRIES:
            raise Problem("too-many", "too many wrong tokens came from your address")
