"""Job ids are of the type uuid in PostgreSQL and text everywhere else: its answers become text here."""

from __future__ import annotations

from psycopg.abc import AdaptContext
from psycopg.adapt import Buffer, Loader
from psycopg.pq import Format


class _Binary(Loader):
    format = Format.BINARY

    def load(self, data: Buffer) -> str:
        text = bytes(data).hex()
        return f"{text[:8]}-{text[8:12]}-{text[12:16]}-{text[16:20]}-{text[20:]}"


class _Text(Loader):
    format = Format.TEXT

    def load(self, data: Buffer) -> str:
        return bytes(data).decode()


def read_ids_as_text(context: AdaptContext) -> None:
    """Let a connection, or a cursor on one of a user, answer with text in the place of UUID objects."""
    assert context.adapters is not None
    context.adapters.register_loader("uuid", _Binary)
    context.adapters.register_loader("uuid", _Text)
