"""`millpond migrate`: the store's schema, created or brought up to date. Safe to run twice or at once."""

from __future__ import annotations

import click

from millpond.cli.output import words
from millpond.cli.session import Session, shared


@click.command("migrate")
@shared
@click.pass_obj
def command(session: Session) -> None:
    """Create or update the store's schema. Safe to run again."""
    done = session.store.migrate()
    url = session.store.url
    session.answer(
        {"store": url, "done": done}, lambda: [words("\n".join(done) or f"{url} is up to date", lines=True)]
    )
