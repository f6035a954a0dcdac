"""What waits in a store that the code at hand would not run: the question before a deploy.

Looks at the waiting jobs, the newest first and at most so many; reads a few payloads of each task. Changes
nothing.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import TYPE_CHECKING

from millpond.cli.exit_codes import one_line
from millpond.cli.output import number_of
from millpond.job import WAITING, Job
from millpond.store.protocol import PAGE, Counts, Filter, Store

if TYPE_CHECKING:
    from millpond.app import App

MOST = 20_000  # jobs looked at
SAMPLE = 20  # jobs of each task whose arguments are read
MOST_NAMES = 20  # findings of one sort
Finding = tuple[str, bool, str]


def findings(app: App, counts: Counts) -> list[Finding]:
    """What is wrong, or one line that nothing is."""
    tasks: Counter[str] = Counter()
    sample: dict[str, list[Job]] = {}
    looked = 0
    for job in _waiting(app.store):
        looked += 1
        tasks[job.task] += 1
        some = sample.setdefault(job.task, [])
        if len(some) < SAMPLE:
            some.append(job)
    wrong = [*_queues(app, counts), *_unknown(app, tasks), *_unreadable(app, sample)]
    all_of_them = sum(queue.states.get(state, 0) for queue in counts.queues for state in WAITING)
    part = f"the newest {looked:,} of " if looked < all_of_them else ""
    jobs = number_of(max(looked, all_of_them), "waiting job")
    return wrong or [("jobs", True, f"{part}{jobs} looked at: the code can run them")]


def _waiting(store: Store) -> Iterator[Job]:
    cursor, left = None, MOST
    while left > 0:
        page = store.search(Filter(states=tuple(sorted(WAITING))), min(PAGE, left), cursor)
        yield from page.jobs
        left, cursor = left - max(1, len(page.jobs)), page.cursor
        if cursor is None:
            break


def _queues(app: App, counts: Counts) -> Iterator[Finding]:
    served = {task.queue for task in app.tasks.values()}
    served.update(queue for settings in app.pools.values() for queue in settings.queues)
    for queue in counts.queues:
        number = sum(queue.states.get(state, 0) for state in WAITING)
        if number and queue.queue not in served:
            jobs = "1 job waits" if number == 1 else f"{number:,} jobs wait"
            text = (
                f"{jobs} in queue {queue.queue!r}, which no pool of the app serves: let one serve it, "
                f"app.pool(..., queues=[..., {queue.queue!r}])"
            )
            yield "queue", False, text


def _unknown(app: App, tasks: Counter[str]) -> Iterator[Finding]:
    unknown = [(name, number) for name, number in tasks.most_common() if not app.knows(name)]
    for name, number in unknown[:MOST_NAMES]:
        jobs = "1 waiting job is" if number == 1 else f"{number:,} waiting jobs are"
        yield (
            "task",
            False,
            one_line(
                f"{jobs} of task {name!r}, which the code does not know: give the task that took its place "
                f"aliases=[{name!r}], or cancel them: millpond jobs cancel --task {name}"
            ),
        )


def _unreadable(app: App, sample: dict[str, list[Job]]) -> Iterator[Finding]:
    for name, jobs in sorted(sample.items()):
        errors = [error for job in jobs if (error := _error(app, job)) is not None]
        if errors:
            yield (
                "arguments",
                False,
                one_line(
                    f"{len(errors)} of {len(jobs)} waiting jobs of task {name!r} have arguments that the "
                    f"code cannot read ({errors[0]}): give new parameters defaults, or the task upgrade=..."
                ),
            )


def _error(app: App, job: Job) -> str | None:
    if not app.knows(job.task):
        return None
    try:
        app.get_task(job.task).read(job.payload)
    except Exception as error:  # validators and `upgrade` are code of the app
        return str(error) or type(error).__name__
    return None
