"""The statements of the SQL stores, one per file, by dialect."""

from __future__ import annotations

from functools import cache
from importlib import resources


@cache
def statement(dialect: str, name: str) -> str:
    """The text of a statement."""
    return resources.files(__name__).joinpath(dialect, f"{name}.sql").read_text(encoding="utf-8").strip()
