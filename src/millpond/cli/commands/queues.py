"""`millpond queues`: how the queues stand, and who may claim from them."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import click

from millpond.cli.context import Session, shared
from millpond.cli.exit_codes import Refusal
from millpond.cli.job_selection import ListByDefault
from millpond.cli.job_tables import queue_document, queue_rows
from millpond.cli.output import rate as shown_rate
from millpond.cli.output import words
from millpond.errors import OptionError
from millpond.node.scaling.fleet import shares_of
from millpond.options import check_queue, nearest

if TYPE_CHECKING:
    from millpond.store.protocol import Store

_RATE = re.compile(r"(?P<number>[0-9]{1,9}(\.[0-9]{1,9})?)/(?P<unit>s|m|h|d)")
_SECONDS_IN = {"s": 1, "m": 60, "h": 3600, "d": 86_400}


@click.group("queues", cls=ListByDefault)
def command() -> None:
    """List queues; pause, resume, limit them. Without a word more: list."""


@command.command("list")
@shared
@click.pass_obj
def list_queues(session: Session) -> None:
    """List queues with their jobs in numbers."""
    queues = session.store.counts().queues
    session.answer({"queues": [queue_document(counts) for counts in queues]}, lambda: queue_rows(queues))


new = click.option("--new", is_flag=True, help="Also a queue that has no job yet and that no node serves.")


@command.command("pause")
@click.argument("name")
@new
@shared
@click.pass_obj
def pause(session: Session, name: str, *, new: bool) -> None:
    """Stop claiming from a queue. What runs goes on."""
    _configure(session, name, new=new, paused=True)


@command.command("resume")
@click.argument("name")
@new
@shared
@click.pass_obj
def resume(session: Session, name: str, *, new: bool) -> None:
    """Claim from a queue again."""
    _configure(session, name, new=new, paused=False)


@command.command("rate")
@click.argument("name")
@click.argument("limit", metavar="100/s|off")
@new
@shared
@click.pass_obj
def rate(session: Session, name: str, limit: str, *, new: bool) -> None:
    """Limit how many jobs of a queue start in a second (/s), minute, hour or day."""
    _configure(session, name, new=new, rate=_rate(limit))


def _rate(text: str) -> float:
    """Jobs a second; 0 means no limit."""
    if text == "off":
        return 0.0
    match = _RATE.fullmatch(text)
    value = float(match["number"]) / _SECONDS_IN[match["unit"]] if match else 0.0
    if value <= 0:
        raise OptionError(f"a rate must be such as 100/s, 30/m, 1000/h or 5/d, or off, not {text!r:.80}")
    return value


def _configure(
    session: Session, name: str, *, new: bool, paused: bool | None = None, rate: float | None = None
) -> None:
    check_queue(name)
    store = session.store
    if not new:
        _check_known(store, name)
    store.configure(queue=name, paused=paused, rate=rate)
    if rate is not None:
        session.audit("queue.rate", name, rate=rate)
    else:
        session.audit("queue.pause" if paused else "queue.resume", name)
    (counts,) = [found for found in store.counts().queues if found.queue == name]
    limited = "no limit" if counts.rate is None else f"at most {shown_rate(counts.rate)}"
    state = "paused" if counts.paused else "open"
    session.answer(queue_document(counts), lambda: [words(f"queue {name}: {state}, {limited}")])


def _check_known(store: Store, name: str) -> None:
    """Raise Refusal for a queue that would come into being: a typing error must not pause nothing."""
    counts = store.counts()
    known = {found.queue for found in counts.queues}
    known.update(queue for share in shares_of(counts.nodes) for queue in share.queues)
    if name not in known:
        raise Refusal(
            f"no job is in a queue {name!r}, and no node serves one{nearest(name, known)}. "
            "--new sets it all the same"
        )
