"""`millpond pools`: the pools of every node, what was decided about their sizes, other bounds for one."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click
import msgspec

from millpond.cli.context import Session, shared
from millpond.cli.exit_codes import Refusal
from millpond.cli.job_selection import ListByDefault
from millpond.cli.output import instant, moment, table, words
from millpond.errors import OptionError
from millpond.node.scaling.decision_log import read_decisions
from millpond.node.scaling.fleet import PoolShare, shares_of
from millpond.node.scaling.overrides import Bounds, checked, read_bounds, write_bounds
from millpond.options import check_queue, nearest

if TYPE_CHECKING:
    from rich.console import RenderableType

    from millpond.store.protocol import Store

_WORKERS = re.compile(r"([0-9]{1,4})(?::([0-9]{1,4}))?")
SHOWN = 20  # decisions, unless somebody asks for more
SENTENCE = 120  # the most characters of one in a cell


@click.group("pools", cls=ListByDefault)
def command() -> None:
    """List the pools of all nodes; set other bounds. Without a word more: list."""


@command.command("list")
@click.option("--decisions", is_flag=True, help="Show the last decisions about sizes, and why.")
@click.option("--limit", type=click.IntRange(1, 1000), default=SHOWN, help="So many decisions.")
@shared
@click.pass_obj
def list_pools(session: Session, decisions: bool, limit: int) -> None:
    """List the pools of every node: workers now, least, most and wanted, and the last decision."""
    shares = sorted(
        shares_of(session.store.counts(ready_only=True).nodes), key=lambda one: (one.name, one.node)
    )
    bounds = {name: read_bounds(session.store, name) for name in {share.name for share in shares}}
    document: dict[str, Any] = {"pools": [_document(share, bounds[share.name]) for share in shares]}
    lines: Sequence[Mapping[str, Any]] = ()
    if decisions:
        lines = read_decisions(session.store, limit)
        document["decisions"] = [{**line, "at": instant(line["at"])} for line in lines]
    session.answer(document, lambda: _decision_rows(lines) if decisions else _rows(shares, bounds))


@command.command("set")
@click.argument("name")
@click.option("--workers", metavar="MIN:MAX", help="Between so many workers on each node.")
@click.option("--reset", is_flag=True, help="What the app says.")
@click.option("--new", is_flag=True, help="Also a pool that no live node has: it counts for nodes to come.")
@shared
@click.pass_obj
def set_bounds(session: Session, name: str, *, workers: str | None, reset: bool, new: bool) -> None:
    """Set how many workers a pool may have on each node. They obey within seconds; busy ones finish."""
    check_queue(name)
    if (workers is None) == (not reset):
        raise click.UsageError("say either --workers MIN:MAX or --reset")
    bounds = None if workers is None else _bounds(name, workers)
    store = session.store
    known = {share.name for share in shares_of(store.counts(ready_only=True).nodes)}
    if name not in known and not new and read_bounds(store, name) is None:
        hint = f"{nearest(name, known)}. --new sets it for nodes to come"
        raise Refusal(f"no live node has a pool {name!r}{hint}")
    write_bounds(store, name, bounds)
    if bounds is None:
        session.audit("pool.reset", name)
    else:
        session.audit("pool.resize", name, min=bounds.least, max=bounds.most)
    said = "what the app says" if bounds is None else f"{bounds.least} to {bounds.most} workers on each node"
    session.answer(_bounds_document(name, store), lambda: [words(f"pool {name}: {said}")])


def _bounds(name: str, text: str) -> Bounds:
    match = _WORKERS.fullmatch(text)
    if match is None:
        raise OptionError(f"--workers must be such as 2:8, or 4 for exactly four, not {text!r:.80}")
    least = int(match[1])
    return checked(name, (least, int(match[2] or least)))


def _bounds_document(name: str, store: Store) -> dict[str, Any]:
    bounds = read_bounds(store, name)
    return {"pool": name, "workers": None if bounds is None else list(bounds)}


def _document(share: PoolShare, bounds: Bounds | None) -> dict[str, Any]:
    facts = msgspec.structs.asdict(share)
    return {**facts, "queues": list(share.queues), "set": None if bounds is None else list(bounds)}


# --- for people ------------------------------------------------------------------------------------------
def _rows(shares: Sequence[PoolShare], bounds: Mapping[str, Bounds | None]) -> list[RenderableType]:
    if not shares:
        return [words("no pools: start a node with `millpond run`")]
    columns = ("pool", "node", "queues", "workers", "min", "max", "wanted", "the last decision")
    rows = [
        (
            share.name,
            share.node,
            ",".join(share.queues),
            share.workers,
            share.least,
            share.most,
            f"({share.wanted})" if share.shadow else share.wanted,
            share.sentence,
        )
        for share in shares
    ]
    found: list[RenderableType] = [table(columns, rows, most=SENTENCE)]
    changed = sorted(name for name, set_to in bounds.items() if set_to is not None)
    if changed:
        found.append(
            words(f"not as the app says, until `millpond pools set NAME --reset`: {', '.join(changed)}")
        )
    if any(share.shadow for share in shares):
        found.append(words("(3): only recommended, the pool is in shadow mode"))
    return found


def _decision_rows(lines: Sequence[Mapping[str, Any]]) -> list[RenderableType]:
    if not lines:
        return [words("no decisions yet: no node has changed the size of a pool")]
    rows = [
        (moment(line["at"]), line.get("node"), _sentence(line) + (" (shadow)" if line.get("shadow") else ""))
        for line in lines
    ]
    return [table(("when", "node", "decision"), rows, most=SENTENCE)]


def _sentence(line: Mapping[str, Any]) -> str:
    return str(line.get("sentence", ""))
