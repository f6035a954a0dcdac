"""Hides passwords, tokens and keys in text, by the names before them and by their shape.

Hides too much rather than too little. The text is hostile: every pattern takes time proportional to the
length of the text, whatever the text is (`tests/jobs/test_redaction.py` counts the steps of each). Two rules
keep that so: a repeat without an upper bound gives nothing back (`++`, `*+`), and it can begin only where no
other pattern of the same search has begun (behind a character that it does not take itself).
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from millpond.config import hide_password

HIDDEN = "***"
LONGEST_NAME = 64  # characters of a name that are looked at: its last ones
NAMES_KEPT = 4_096

# Parts of a name, without `_` and `-`, that tell a secret wherever they stand in it.
_PARTS = re.compile(
    r"passw(?:or)?d|passphrase|passcode|pwd|secret|token|credential|cookie|sessionid|cardnumber|"
    r"(?:api|access|private|signing|encryption|master|auth|account|shared)key|authorization|"
    r"(?:amz|goog|shared|url)signature"
)
# Words that tell a secret only when they are a word of the name: `pin` and not `shipping`.
_WORDS = re.compile(r"_(?:pass|pw|otp|totp|pin|mfa|jwt|bearer|auth|csrf|xsrf|cvv|cvc|ssn|sig|session|sid)_")
_HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
_BETWEEN = re.compile(r"[^a-z0-9]++")
_own: frozenset[str] = frozenset()  # names that programs of this process have given: `_name_`


class Secret:
    """Marks a parameter whose value is never shown: `def charge(card: Annotated[str, Secret])`."""


def also_hide(names: Iterable[str]) -> None:
    """Hide values of these names, too, in all that this process shows. What is hidden once stays hidden."""
    global _own
    _own |= {_words(name) for name in names}
    names_a_secret.cache_clear()


def _words(name: str) -> str:
    """A name as words between underscores: `dbPass`, `DB-PASS` and `db_pass` are `_db_pass_`."""
    return f"_{_BETWEEN.sub('_', _HUMP.sub('_', name).lower()).strip('_')}_"


@lru_cache(NAMES_KEPT)
def names_a_secret(name: str) -> bool:
    """Would a value of that name be one to hide?"""
    words = _words(name[-LONGEST_NAME:])
    return (
        _PARTS.search(words.replace("_", "")) is not None
        or _WORDS.search(words) is not None
        or any(own in words for own in _own)
    )


# --- shapes ----------------------------------------------------------------------------------------------
_USER_ONLY = re.compile(r"(\w://)[^/@\s:]++@")  # https://token@host
_SIGNED = re.compile(r"([?&][\w.-]{0,64}signature=)[^&#\s]++", re.IGNORECASE)
_HOOK = re.compile(r"\b(hooks\.slack\.com/|discord(?:app)?\.com/api/webhooks/)[\w/-]++")
# A run of tokens with dots between them. One that has the head of a JSON web token in it is hidden whole.
_DOTTED = re.compile(r"(?<![\w.-])[\w-]++(?:\.[\w-]*+)++")
_WEB_TOKEN = re.compile(r"(?<![A-Za-z0-9])eyJ[\w-]{5}")
_ISSUED = re.compile(
    r"\b(?:AKIA|ASIA)[0-9A-Z]{16}\b"  # an access key of a cloud
    r"|\b(?:gh[pousr]|github_pat|glpat|xox[abeprs]|sk|rk|pk|whsec|hf|npm|pypi|dckr_pat|shpat)[_-][\w-]{16,}+"
    r"|\bAIza[\w-]{35}"
    r"|\bya29\.[\w-]{16,}+"
    r"|\bSG\.[\w-]{16,}+\.[\w-]{16,}+"
)
_PRIVATE_KEY = re.compile(
    r"-----BEGIN [A-Z ]{0,40}PRIVATE KEY-----"
    r"(?:[^-]++|-(?!----END [A-Z ]{0,40}PRIVATE KEY-----))*+"
    r"(?:-----END [A-Z ]{0,40}PRIVATE KEY-----)?+"
)
_AUTHORIZATION = re.compile(
    r"""(?<![A-Za-z])((?:proxy-)?authorization\\*+["']?+\s*+[=:]\s*+\\*+["']?+)(?:[A-Za-z-]{1,32}+ )?+"""
    r"""[^\s,;"'\\]++""",
    re.IGNORECASE,
)
_BEARER = re.compile(r"\b(bearer|basic)\s++[\w.~+/=-]{6,}+", re.IGNORECASE)

# --- names with a value behind them ----------------------------------------------------------------------
# name = value, "name": "value", name: value, also with escaped quotes; os.environ["NAME"] = value
_NAMED = re.compile(
    r"""(?<![\w-])([\w-]++)\\*+["']?+\]?+(?:\s*+(?:=[=>]?+|:=?+)\s*+|\s++is\s++(?=\\*+["']))"""
)
_FLAG = re.compile(r"(?<![\w-])(--[\w-]++)\s++(?!-)")  # --name value
_QUOTE = re.compile(r"""(?<!\\)(\\*+)["']""")
_QUOTED = {
    '"': re.compile(r'"(?:[^"\\]++|\\.)*+"?+', re.DOTALL),
    "'": re.compile(r"'(?:[^'\\]++|\\.)*+'?+", re.DOTALL),
}
_BRACKET = re.compile(
    r"""[\[({]|[\])}]|\\++["']?+|"(?:[^"\\]++|\\.)*+"?+|'(?:[^'\\]++|\\.)*+'?+""", re.DOTALL
)
_BARE = re.compile(r"[^\s,;&)}\]]++")
_REST_OF_LINE = re.compile(r"""[^\r\n"'\\]++""")  # of a header with several values

# What a pattern needs somewhere in the text, in lower case. Looking for these takes a tenth of the time.
_ISSUERS = (
    "akia", "asia", "ghp", "gho", "ghu", "ghs", "ghr", "github_pat", "glpat", "xox", "sk_", "sk-", "rk_",
    "rk-", "pk_", "pk-", "whsec", "hf_", "hf-", "npm", "pypi", "dckr_pat", "shpat", "aiza", "ya29.", "sg.",
)  # fmt: skip


def without_secrets(text: str) -> str:
    """The text with passwords, tokens and keys hidden."""
    lower = text.lower()
    text = _without_known(text, lower)
    if "authorization" in lower:
        text = _AUTHORIZATION.sub(rf"\1{HIDDEN}", text)
    if "bearer" in lower or "basic" in lower:
        text = _BEARER.sub(rf"\1 {HIDDEN}", text)
    if "=" in text or ":" in text or " is " in text:
        text = _without_values(text, _NAMED)
    return _without_values(text, _FLAG) if "--" in text else text


def _without_known(text: str, lower: str) -> str:
    """Without what can be told by its shape."""
    if "://" in text or "=" in text:
        text = hide_password(text)
        if "@" in text:
            text = _USER_ONLY.sub(rf"\1{HIDDEN}@", text)
        if "signature=" in lower:
            text = _SIGNED.sub(rf"\1{HIDDEN}", text)
    if "hooks.slack" in lower or "webhooks/" in lower:
        text = _HOOK.sub(rf"\1{HIDDEN}", text)
    if "eyJ" in text:
        text = _DOTTED.sub(_without_web_token, text)
    if any(issuer in lower for issuer in _ISSUERS):
        text = _ISSUED.sub(HIDDEN, text)
    return _PRIVATE_KEY.sub(HIDDEN, text) if "-----BEGIN" in text else text


def _without_web_token(found: re.Match[str]) -> str:
    return HIDDEN if _WEB_TOKEN.search(found[0]) else found[0]


def _without_values(text: str, named: re.Pattern[str]) -> str:
    """The text without what stands behind names of secrets. Goes on behind each value: never looks twice."""
    parts: list[str] = []
    at = 0
    kept = 0  # what was not taken over yet begins here
    while (found := named.search(text, at)) is not None:
        at = found.end()
        if names_a_secret(found[1][-LONGEST_NAME:]):
            end = _end_of_value(text, at, found[1])
            if end > at:
                parts += (text[kept:at], HIDDEN)
                at = kept = end
    return "".join((*parts, text[kept:])) if parts else text


def _end_of_value(text: str, at: int, name: str) -> int:
    """Where the value that begins here ends: at the end of the text if it is cut off."""
    quote = _QUOTE.match(text, at)
    if quote is not None:
        return _end_of_quoted(text, at, quote)
    if text[at : at + 1] in ("[", "(", "{"):
        return _end_of_brackets(text, at)
    several = "cookie" in name[-LONGEST_NAME:].lower()
    found = (_REST_OF_LINE if several else _BARE).match(text, at)
    return at if found is None else found.end()


def _end_of_quoted(text: str, at: int, quote: re.Match[str]) -> int:
    if not quote[1]:
        found = _QUOTED[quote[0]].match(text, at)
        assert found is not None
        return found.end()
    end = quote.end()  # JSON in JSON: the same number of backslashes closes it, more of them do not
    while (end := text.find(quote[0], end)) >= 0:
        end += len(quote[0])
        if text[end - len(quote[0]) - 1] != "\\":
            return end
    return len(text)


def _end_of_brackets(text: str, at: int) -> int:
    depth = 0
    for found in _BRACKET.finditer(text, at):
        depth += {"[": 1, "(": 1, "{": 1, "]": -1, ")": -1, "}": -1}.get(found[0], 0)
        if depth == 0:
            return found.end()
    return len(text)
