"""Which jobs a command is about: pages of a list, jobs by id, or many by filter.

What changes many jobs at once says how many and asks first. An empty choice is refused: to a store, no ids
means every job.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

import click

from millpond.cli.exit_codes import Refusal
from millpond.cli.output import number_of
from millpond.errors import OptionError
from millpond.job import Job, JobState
from millpond.options import check_id, check_queue, check_text
from millpond.store.protocol import PAGE, Filter, Page, Store

if TYPE_CHECKING:
    from millpond.cli.context import Session

Command = Callable[..., None]
SHORTEST = 8  # digits of an id that was cut short


class ListByDefault(click.Group):
    """A group whose `list` may be left out: `millpond jobs --state dead`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put `list` where nothing else is said."""
        if not args or (args[0].startswith("-") and args[0] not in ctx.help_option_names):
            args = ["list", *args]
        return super().parse_args(ctx, args)


def paged(function: Command) -> Command:
    """Give a command the filters and the paging of a list."""
    for option in (
        click.option("--cursor", help="Go on where the last page ended."),
        click.option(
            "--limit", type=click.IntRange(1, PAGE), default=50, show_default=True, help="Jobs to a page."
        ),
        click.option("--task", help="Only jobs of this task."),
        click.option("--queue", help="Only jobs of this queue."),
    ):
        function = option(function)
    return function


def selective(function: Command) -> Command:
    """Give a command the ways to say which jobs: ids, --all, --queue, --task."""
    for option in (
        click.option("--yes", is_flag=True, help="Do not ask."),
        click.option("--task", help="Those of this task."),
        click.option("--queue", help="Those of this queue."),
        click.option("--all", "everything", is_flag=True, help="All of them."),
        click.argument("ids", nargs=-1, metavar="[ID]..."),
    ):
        function = option(function)
    return function


def page(
    store: Store,
    states: tuple[JobState, ...],
    *,
    queue: str | None,
    task: str | None,
    limit: int,
    cursor: str | None,
) -> Page:
    """A page of jobs, its options checked."""
    chosen = Filter(
        states=states,
        queue=None if queue is None else check_queue(queue),
        task=None if task is None else check_text(task, "--task", 200),
    )
    found = store.search(chosen, limit, None if cursor is None else _cursor(cursor))
    jobs, goes_on = list(found.jobs), found.cursor
    while goes_on is not None and len(jobs) < limit:  # one search looks at only so many; a person wants all
        found = store.search(chosen, limit - len(jobs), goes_on)
        jobs, goes_on = [*jobs, *found.jobs], found.cursor
    return Page(tuple(jobs), goes_on)


def _cursor(text: str) -> str:
    try:
        return check_id(text)
    except OptionError:
        raise OptionError("--cursor must be what the page before gave as its cursor") from None


def one(store: Store, job_id: str) -> Job:
    """The job of that id, or the reason why there is none."""
    (job,) = existing(store, (job_id,))
    return job


def existing(store: Store, ids: Sequence[str]) -> list[Job]:
    """These jobs; an id that the store does not know stops the command before it does anything."""
    asked = list(dict.fromkeys(whole_ids(store, ids)))
    found = store.get(asked)
    for job_id, job in zip(asked, found, strict=True):
        if job is None:
            raise Refusal(
                f"no job {job_id} is in {store.url}: it never was, it was pruned, or its row is damaged"
            )
    return [job for job in found if job is not None]


def whole_ids(store: Store, ids: Sequence[str]) -> tuple[str, ...]:
    """Each id in full; of one that was cut short the beginning must name one job."""
    return tuple(_whole_id(store, job_id) for job_id in ids)


def _whole_id(store: Store, text: str) -> str:
    part = text.replace("-", "").lower()
    if not SHORTEST <= len(part) < 32 or not set(part) <= set("0123456789abcdef"):
        return check_id(text)
    # Ids sort by time and a search goes on below its cursor: the highest id with this beginning is one.
    cursor = check_id(part + "f" * (32 - len(part)))
    found = store.search(Filter(), 2, cursor)
    while not found.jobs and found.cursor is not None:
        found = store.search(Filter(), 2, found.cursor)
    same = [job.id for job in found.jobs if job.id.replace("-", "").startswith(part)]
    if not same:
        raise Refusal(f"no job in {store.url} has an id that begins with {text}")
    if len(same) > 1:
        raise Refusal(
            f"the ids of several jobs begin with {text}, such as {same[0]} and {same[1]}: give more of it"
        )
    return same[0]


class Choice:
    """The jobs a changing command was told to change."""

    def __init__(
        self,
        ids: Sequence[str],
        *,
        everything: bool,
        queue: str | None,
        task: str | None,
        states: tuple[JobState, ...],
    ) -> None:
        filtered = queue is not None or task is not None
        if bool(ids) + everything + filtered != 1:
            raise click.UsageError(
                "say which jobs: their ids, or --all, or --queue and --task; one of these, not several"
            )
        self.by_id = bool(ids)
        self.filter = Filter(
            states=states,
            queue=None if queue is None else check_queue(queue),
            task=None if task is None else check_text(task, "--task", 200),
            ids=tuple(dict.fromkeys(check_id(job_id) for job_id in ids)),
        )

    @property
    def words(self) -> str:
        """Which jobs, for people."""
        if self.by_id:
            more = len(self.filter.ids) - 3
            return " ".join(self.filter.ids[:3]) + (f" and {more} more" if more > 0 else "")
        named = (("queue", self.filter.queue), ("task", self.filter.task))
        return " ".join(f"{name}={value}" for name, value in named if value is not None) or "all"

    def confirm(self, session: Session, verb: str, *, yes: bool) -> None:
        """Ask before many jobs are changed. Without a terminal nobody can answer: --yes must say so."""
        if self.by_id or yes:
            return
        found = session.store.search(self.filter, PAGE)
        number = number_of(len(found.jobs), more=found.cursor is not None)
        if not sys.stdin.isatty():
            raise click.UsageError(
                f"this would {verb} {number}: say --yes, as there is no terminal to ask on"
            )
        are_any = found.jobs or found.cursor is not None
        if are_any and not click.confirm(f"{verb} {number} of {session.store.url}?", err=True):
            raise Refusal("nothing was changed")
