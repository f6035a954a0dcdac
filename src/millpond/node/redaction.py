"""Text from jobs and servers made fit to be shown: no secrets, no control characters, not too long.

Hides too much rather than too little. Whatever a job put into an error message can neither begin a new line
of the log nor move the cursor of the terminal that shows it.
"""

from __future__ import annotations

import re
from typing import Literal

from millpond.config import hide_password

LONGEST = 2_000  # characters kept of one text
READ = 4 * LONGEST  # characters looked at
HIDDEN = "***"
_NAMES = (
    r"(?:passw(?:or)?d|passphrase|pwd|secret|token|api[_-]?key|access[_-]?key|private[_-]?key|credential|cookie|"
    r"session[_-]?id)[\w-]{0,20}"
)
# name = value, "name": "value", name: value, also with escaped quotes
_PAIR = re.compile(
    rf"""({_NAMES}\\?["']?\s*[=:]\s*)(?:\\?"[^"]*"|\\?'[^']*'|[^\s,;&)}}\]]+)""", re.IGNORECASE
)
_AUTHORIZATION = re.compile(
    r"""\b((?:proxy-)?authorization\\?["']?\s*[=:]\s*\\?["']?)(?:[A-Za-z-]+ )?[^\s,;"']+""", re.IGNORECASE
)
_BEARER = re.compile(r"\b(bearer|basic)\s+[\w.~+/=-]{6,}", re.IGNORECASE)
_USER_ONLY = re.compile(r"(\w://)[^/@\s:]+@")  # https://token@host
_KNOWN = re.compile(
    r"\beyJ[\w-]{5,}\.[\w-]+\.[\w-]*"  # a JSON web token
    r"|\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"  # an access key of a cloud
    r"|\b(?:gh[pousr]|github_pat|glpat|xox[abprs]|sk|rk|pk)[_-][\w-]{16,}"  # tokens that name their issuer
    r"|-----BEGIN [A-Z ]*PRIVATE KEY-----.*?(?:-----END [A-Z ]*PRIVATE KEY-----|$)",
    re.DOTALL,
)
# What every one of the patterns needs: most text has none of it and is done with one search.
_MAYBE = re.compile(
    r"[=:@]|eyJ|A[KS]IA|BEGIN|(?:bearer|basic)\s|(?:gh[pousr]|github_pat|glpat|xox[abprs]|sk|rk|pk)[_-]",
    re.IGNORECASE,
)


_NAME = re.compile(_NAMES, re.IGNORECASE)


def names_a_secret(name: str) -> bool:
    """Would a value of that name be one to hide?"""
    return _NAME.search(name) is not None or name.lower() in ("authorization", "proxy-authorization", "auth")


def without_secrets(text: str) -> str:
    """The text with passwords, tokens and keys hidden."""
    if _MAYBE.search(text) is None:
        return text
    text = _KNOWN.sub(HIDDEN, hide_password(text))
    text = _USER_ONLY.sub(rf"\1{HIDDEN}@", text)
    text = _AUTHORIZATION.sub(rf"\1{HIDDEN}", text)
    text = _BEARER.sub(rf"\1 {HIDDEN}", text)
    return _PAIR.sub(rf"\1{HIDDEN}", text)


def on_one_line(text: str) -> str:
    """The text with everything that is not printable written as an escape: newlines, ANSI, bidi marks."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shown(text: str, keep: Literal["start", "end"] = "start") -> str:
    """The text as it may be shown: one line, cut to its start or its end."""
    # Cut twice: before, since no text may take long; after, since a cut through a name would show its secret.
    text = text[:READ] if keep == "start" else text[-READ:]
    text = on_one_line(without_secrets(text))
    if len(text) <= LONGEST:
        return text
    return text[:LONGEST] + "…" if keep == "start" else "…" + text[-LONGEST:]
