"""Text from jobs and servers made fit to be shown: no secrets, no control characters, not too long.

Whatever a job put into an error message can neither begin a new line of the log nor move the cursor of the
terminal that shows it. What is a secret is told by `millpond/redaction.py`.
"""

from __future__ import annotations

from typing import Literal

from millpond.redaction import without_secrets

LONGEST = 2_000  # characters kept of one text


def on_one_line(text: str) -> str:
    """The text with everything that is not printable written as an escape: newlines, ANSI, bidi marks."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def shown(text: str, keep: Literal["start", "end"] = "start", most: int = LONGEST) -> str:
    """The text as it may be shown: one line, cut to its start or its end."""
    # Cut twice: before the search, which costs time for each character of a text of any length; and after it,
    # since a cut through the name before a secret would show the secret.
    text = text[: 2 * most] if keep == "start" else text[-2 * most :]
    text = on_one_line(without_secrets(text))
    if len(text) <= most:
        return text
    return text[:most] + "…" if keep == "start" else "…" + text[-most:]
