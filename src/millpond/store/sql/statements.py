"""The statements of the SQL stores, one per file, by dialect."""

from __future__ import annotations

import re
from functools import cache
from importlib import resources


@cache
def statement(dialect: str, name: str) -> str:
    """The text of a statement."""
    return (
        resources.files("millpond.store")
        .joinpath(dialect, "sql", f"{name}.sql")
        .read_text(encoding="utf-8")
        .strip()
    )


def split(text: str) -> list[tuple[str, str]]:
    """The statements of a text and the comment above each. A statement ends with its line."""
    found = []
    for part in re.split(r";\s*(?:\n|$)", text):
        lines = part.strip().splitlines()
        said = "\n".join(line for line in lines if not line.startswith("--"))
        if said:
            note = " ".join(line.removeprefix("--").strip() for line in lines if line.startswith("--"))
            found.append((said, note))
    return found
