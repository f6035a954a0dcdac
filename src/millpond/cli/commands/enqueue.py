"""`millpond enqueue`: a job from the command line, checked as `task.enqueue(...)` checks it."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from millpond.cli.context import Session, shared
from millpond.cli.exit_codes import Refusal
from millpond.cli.output import words
from millpond.errors import OutcomeUnknown
from millpond.ids import new_id
from millpond.job import Priority

if TYPE_CHECKING:
    from millpond.handle import JobHandle
    from millpond.options import UsingKeywords


@click.command("enqueue")
@click.argument("task")
@click.argument("arguments", nargs=-1, metavar="[JSON]...")
@click.option("--kwargs", metavar="JSON", help="Arguments by name, as a JSON object.")
@click.option("--queue", help="Another queue than the task's own.")
@click.option("--priority", metavar="0-9", help="0 to 9, or low, normal, high, critical.")
@click.option("--delay", metavar="DURATION", help="Not before this long from now, such as 10m.")
@click.option("--unique", metavar="KEY", help="No second job of this task with this key until it has ended.")
@click.option("--id", "job_id", metavar="UUID", help="The job's id; a known id makes no second job.")
@shared
@click.pass_obj
def command(
    session: Session, /, *, task: str, arguments: tuple[str, ...], kwargs: str | None, **options: str | None
) -> None:
    """Store a job of TASK. Each argument is one JSON value.

    \b
    millpond enqueue jobs.resize '"a.png"' 200
    millpond enqueue jobs.resize --kwargs '{"path": "a.png", "width": 200}'
    Put -- before arguments that begin with a minus sign.
    """  # noqa: D301 - click wants a bare backspace before lines it shall keep
    using = _using(**options)
    positional = [_value(text, f"argument {place}") for place, text in enumerate(arguments, start=1)]
    named = _named(kwargs)
    found = session.app.get_task(task)
    if session.app.store.url == "memory://":
        raise Refusal("the app's store is memory://, which ends with this command: name a store that lasts")
    try:
        handle = found.using(**using).enqueue(*positional, **named)
    except OutcomeUnknown as error:
        again = f"with --id {using['id']} it can be repeated and makes no second job"
        raise OutcomeUnknown(f"{error}; {again}") from error
    _tell(session, handle, found.name)


def _using(job_id: str | None, priority: str | None, **others: str | None) -> UsingKeywords:
    """What was said, for `using()`. The id is made here, so that it can be told if the outcome is not."""
    said = {"id": job_id or new_id(), "priority": _priority(priority), **others}
    return {key: value for key, value in said.items() if value is not None}  # type: ignore[return-value]


def _tell(session: Session, handle: JobHandle[Any], task: str) -> None:
    document = {"id": handle.id, "created": handle.created, "task": task}
    already = f"{handle.id} was there already: no second job was made"
    session.answer(document, lambda: [words(f"{handle.id} enqueued" if handle.created else already)])


def _value(text: str, name: str) -> Any:
    try:
        return json.loads(text)
    except RecursionError:
        raise click.UsageError(f"{name} is nested too deep: flatten it, or store it elsewhere") from None
    except json.JSONDecodeError as error:
        quoted = json.dumps(text[:60], ensure_ascii=False)
        raise click.UsageError(f"{name} is not JSON ({error}): text needs its quotes, '{quoted}'") from None
    except ValueError:  # Python reads no int of more than 4,300 digits
        raise click.UsageError(f"{name} has an int beyond 64 bits: pass it as text, in quotes") from None


def _named(text: str | None) -> dict[str, Any]:
    if text is None:
        return {}
    named = _value(text, "--kwargs")
    if not isinstance(named, dict):
        raise click.UsageError("--kwargs must be a JSON object, such as '{\"width\": 200}'")
    return named


def _priority(text: str | None) -> int | str | None:
    """A number or a name; what is neither goes on as it is, to be refused where priorities are checked."""
    if text is None:
        return None
    if text.upper() in Priority.__members__:
        return int(Priority[text.upper()])
    return int(text) if text.isascii() and text.isdigit() and len(text) < 9 else text
