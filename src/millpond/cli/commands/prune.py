"""`millpond prune`: delete jobs that ended longer ago than the retention settings keep them."""

from __future__ import annotations

import click

from millpond.cli.context import Session, shared
from millpond.cli.output import number_of, words
from millpond.store.protocol import Retention


@click.command("prune")
@click.option("--retention-completed", metavar="DURATION", help="Keep completed jobs this long; 7d.")
@click.option("--retention-cancelled", metavar="DURATION", help="Keep cancelled jobs this long; 7d.")
@click.option("--retention-dead", metavar="DURATION", help="Keep dead jobs this long; 90d.")
@shared
@click.pass_obj
def command(session: Session, /, **flags: str | None) -> None:
    """Delete jobs that ended long ago. Nodes do this by themselves."""
    session.flags.update(flags)
    config = session.config
    retention = Retention(
        completed=config["retention_completed"],
        cancelled=config["retention_cancelled"],
        dead=config["retention_dead"],
    )
    number = session.store.prune(retention)
    session.audit("jobs.prune", changed=number)
    session.answer({"pruned": number}, lambda: [words(f"{number_of(number)} deleted")])
