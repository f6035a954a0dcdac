"""`millpond dead`: the dead jobs, looked at, run again, or thrown away."""

from __future__ import annotations

from typing import Any

import click

from millpond.cli.context import Session, shared
from millpond.cli.exit_codes import FAILED, Refusal
from millpond.cli.job_selection import Choice, ListByDefault, existing, one, page, paged, selective, whole_ids
from millpond.cli.job_tables import dead_rows, job_document, job_page, page_document
from millpond.cli.output import number_of, words
from millpond.disclosure import disclosed
from millpond.job import Job, JobState
from millpond.store.protocol import Retention

DEAD = (JobState.DEAD,)


@click.group("dead", cls=ListByDefault)
def command() -> None:
    """List, replay and discard dead jobs. Without a word more: list."""


@command.command("list")
@paged
@shared
@click.pass_obj
def list_dead(session: Session, /, **filters: Any) -> None:
    """List dead jobs, newest first, with what they died of."""
    found = page(session.store, DEAD, **filters)
    session.answer(page_document(found), lambda: dead_rows(found))


@command.command("show")
@click.argument("job_id", metavar="ID")
@click.option("--reveal", is_flag=True, help="Show what is called or looks like a secret, too.")
@shared
@click.pass_obj
def show(session: Session, job_id: str, *, reveal: bool) -> None:
    """Show everything about a dead job. What is called or looks like a secret is shown as ***."""
    found = one(session.store, job_id)
    _refuse_living([found])
    job = found if reveal else disclosed(found)
    why = session.jobs.handle(job.id).why()
    session.answer({**job_document(job), "why": why}, lambda: job_page(job, why))


@command.command("replay")
@selective
@shared
@click.pass_obj
def replay(session: Session, /, *, yes: bool, **said: Any) -> None:
    """Run dead jobs again, with fresh budgets."""
    chosen = _chosen(session, "replay", yes=yes, **said)
    number = session.store.replay(chosen.filter)
    session.audit("dead.replay", chosen.words, changed=number)
    left = len(chosen.filter.ids) - number if chosen.by_id else 0
    damaged = f"; {left} cannot be (damaged, or no longer dead)" if left > 0 else ""
    session.answer({"replayed": number}, lambda: [words(f"{number_of(number)} queued again{damaged}")])
    if left > 0:
        raise click.exceptions.Exit(FAILED)


@command.command("discard")
@selective
@shared
@click.pass_obj
def discard(session: Session, /, *, yes: bool, **said: Any) -> None:
    """Delete dead jobs for good."""
    chosen = _chosen(session, "discard", yes=yes, **said)
    number = session.store.prune(Retention(), chosen.filter)
    session.audit("dead.discard", chosen.words, changed=number)
    session.answer({"discarded": number}, lambda: [words(f"{number_of(number)} discarded")])
    if chosen.by_id and number < len(chosen.filter.ids):
        raise click.exceptions.Exit(FAILED)


def _chosen(session: Session, verb: str, *, yes: bool, **said: Any) -> Choice:
    said["ids"] = whole_ids(session.store, said["ids"])
    chosen = Choice(**said, states=DEAD)
    if chosen.by_id:
        _refuse_living(existing(session.store, chosen.filter.ids))
    chosen.confirm(session, verb, yes=yes)
    return chosen


def _refuse_living(jobs: list[Job]) -> None:
    for job in jobs:
        if job.state is not JobState.DEAD:
            raise Refusal(f"job {job.id} is not dead but {job.state}: see `millpond jobs show {job.id}`")
