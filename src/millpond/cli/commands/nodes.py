"""`millpond nodes`: which nodes have a lease, what they run, which are being rescued; and draining one."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import click

from millpond.cli.context import Session, shared
from millpond.cli.exit_codes import Refusal
from millpond.cli.job_selection import ListByDefault
from millpond.cli.output import number_of, span, table, words
from millpond.options import nearest
from millpond.store.protocol import NodeRecord

if TYPE_CHECKING:
    from rich.console import RenderableType

# By which nodes of one machine know each other, and what `millpond pools` and the dashboard show
MACHINE_ONLY = {"report", "pools", "boot", "namespace", "begun"}


@click.group("nodes", cls=ListByDefault)
def command() -> None:
    """List nodes with their leases; drain one. Without a word more: list."""


@command.command("drain")
@click.argument("node")
@click.option("--grace", metavar="DURATION", help="How long running jobs may finish; else as the node says.")
@shared
@click.pass_obj
def drain(session: Session, node: str, *, grace: str | None) -> None:
    """Have a node finish what it runs, give back the rest, and end. NODE is its id or the beginning of it."""
    from millpond.node.commands import LONGEST_GRACE, send
    from millpond.units import seconds

    facts = {} if grace is None else {"grace": min(LONGEST_GRACE, seconds(grace, name="--grace"))}
    found = _live(session.store.counts(ready_only=True).nodes, node)
    send(session.store, found, "drain", **facts)
    session.audit("node.drain", found, **facts)
    session.answer(
        {"node": found, "command": "drain", **facts},
        lambda: [words(f"node {found} is told to drain; `millpond nodes` shows it until it has ended")],
    )


def _live(nodes: Iterable[NodeRecord], text: str) -> str:
    """The id of the one live node that is meant."""
    ids = sorted(node.id for node in nodes if _state(node) == "live")
    same = [text] if text in ids else [node for node in ids if node.startswith(text)]
    if len(same) == 1:
        return same[0]
    hint = f"; these begin so: {', '.join(same)}" if same else nearest(text, ids)
    raise Refusal(f"{text!r} is not the id of one live node{hint}")


@command.command("list")
@shared
@click.pass_obj
def list_nodes(session: Session) -> None:
    """List nodes with their leases and how many jobs they run."""
    nodes = sorted(session.store.counts().nodes, key=lambda node: (node.host, node.id))
    session.answer({"nodes": [_document(node) for node in nodes]}, lambda: _rows(nodes))


def _document(node: NodeRecord) -> dict[str, Any]:
    return {
        "id": node.id,
        "host": node.host,
        "state": _state(node),
        "lease_left": round(node.lease_left, 3),
        "running": node.running,
        "info": _info(node),
    }


def _state(node: NodeRecord) -> str:
    """An expired lease alone refuses nothing: the node may be back before anybody rescues its jobs."""
    if node.sealed:
        return "rescued"
    return "live" if node.lease_left > 0 else "silent"


def _info(node: NodeRecord) -> Any:
    """What the node says about itself; hostile text, and perhaps of a later version."""
    try:
        return json.loads(node.info, parse_constant=str)
    except (ValueError, RecursionError):
        return node.info.decode(errors="backslashreplace")


# --- for people ------------------------------------------------------------------------------------------
def _rows(nodes: list[NodeRecord]) -> list[RenderableType]:
    if not nodes:
        return [words("no nodes: jobs wait until one is started with `millpond run`")]
    rows = [
        (node.id, node.host, _state(node), _lease(node), node.running, _shown(_info(node))) for node in nodes
    ]
    silent = sum(_state(node) == "silent" for node in nodes)
    hint = f"{number_of(silent, 'node')} did not renew in time: any live node will run those jobs again"
    columns = ("node", "host", "state", "lease left", "running", "info")
    return [table(columns, rows), *([words(hint)] if silent else [])]


def _lease(node: NodeRecord) -> str:
    return span(node.lease_left) if node.lease_left > 0 else f"over for {span(-node.lease_left)}"


def _shown(info: Any) -> str:
    """What people want to know, as name=value."""
    if not isinstance(info, dict):
        return str(info)
    return " ".join(f"{name}={_plain(value)}" for name, value in info.items() if name not in MACHINE_ONLY)


def _plain(value: Any) -> str:
    return ",".join(map(str, value)) if isinstance(value, list) else str(value)
