"""`millpond jobs`: look at jobs, and end them."""

from __future__ import annotations

from typing import Any

import click

from millpond.cli.context import Session, shared
from millpond.cli.exit_codes import FAILED
from millpond.cli.job_selection import Choice, ListByDefault, existing, one, page, paged, selective, whole_ids
from millpond.cli.job_tables import job_document, job_page, job_rows, page_document
from millpond.cli.output import number_of, words
from millpond.disclosure import disclosed
from millpond.job import ENDS, JobState

UNENDED = tuple(state for state in JobState if state not in ENDS)


@click.group("jobs", cls=ListByDefault)
def command() -> None:
    """List, show, explain and cancel jobs. Without a word more: list."""


@command.command("list")
@click.option(
    "--state",
    "states",
    multiple=True,
    type=click.Choice([state.value for state in JobState]),
    help="Only jobs in this state; may be given again.",
)
@paged
@shared
@click.pass_obj
def list_jobs(session: Session, /, states: tuple[str, ...], **filters: Any) -> None:
    """List jobs, newest first."""
    wanted = tuple(JobState(state) for state in states)
    found = page(session.store, wanted, **filters)
    session.answer(page_document(found), lambda: job_rows(found))


@command.command("show")
@click.argument("job_id", metavar="ID")
@click.option("--reveal", is_flag=True, help="Show what is called or looks like a secret, too.")
@shared
@click.pass_obj
def show(session: Session, job_id: str, *, reveal: bool) -> None:
    """Show everything about a job. What is called or looks like a secret is shown as ***."""
    found = one(session.store, job_id)
    job = found if reveal else disclosed(found)
    why = session.jobs.handle(job.id).why()
    session.answer({**job_document(job), "why": why}, lambda: job_page(job, why))


@command.command("why")
@click.argument("job_id", metavar="ID")
@shared
@click.pass_obj
def why(session: Session, job_id: str) -> None:
    """Say why a job is where it is."""
    job = one(session.store, job_id)
    sentence = session.jobs.handle(job.id).why()
    session.answer({"id": job.id, "state": job.state.value, "why": sentence}, lambda: [words(sentence)])


@command.command("cancel")
@selective
@shared
@click.pass_obj
def cancel(session: Session, /, *, yes: bool, **said: Any) -> None:
    """Cancel jobs: at once if they wait, soon if they run."""
    said["ids"] = whole_ids(session.store, said["ids"])
    chosen = Choice(**said, states=UNENDED)
    if chosen.by_id:
        existing(session.store, chosen.filter.ids)
    chosen.confirm(session, "cancel", yes=yes)
    number = session.store.cancel(chosen.filter)
    session.audit("job.cancel", chosen.words, changed=number)
    late = len(chosen.filter.ids) - number if chosen.by_id else 0
    ended = f"; {late} had ended already" if late > 0 else ""
    session.answer(
        {"cancelled": number, "ended_already": max(0, late)},
        lambda: [words(f"{number_of(number)} cancelled{ended}")],
    )
    if late > 0:
        raise click.exceptions.Exit(FAILED)
