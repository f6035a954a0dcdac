"""What nodes tell each other about their pools, inside the record of their lease; and the sum of it.

Whoever can read the store sees the pools of all nodes: `millpond pools`, `/scale`, the HTTP API. What others
wrote may be of a later version, or damaged: then that node has no pools here.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import msgspec

from millpond.store.protocol import NodeRecord

FILLED = 0.9  # of a node's places that are planned for; the rest is for what no plan sees
MOST_EACH = 1_000_000  # workers of a pool on one node, whatever its record says
MOST_POOLS = 1000  # of one node


class PoolShare(msgspec.Struct, frozen=True, kw_only=True):
    """One pool of one node, as that node last told."""

    name: str
    queues: tuple[str, ...]
    workers: int  # there now, with those on their way
    least: int
    most: int
    concurrency: int
    wanted: int
    desired: int  # would be wanted if this node had no bounds
    shadow: bool = False
    sentence: str = ""
    node: str = ""
    host: str = ""


class _Info(msgspec.Struct):
    queues: tuple[str, ...] = ()
    pools: tuple[Any, ...] = ()


def told(shares: Iterable[PoolShare]) -> list[dict[str, Any]]:
    """For the node's own record, which has its name anyway."""
    facts = [msgspec.structs.asdict(share) for share in shares]
    return [{key: value for key, value in fact.items() if key not in ("node", "host")} for fact in facts]


def shares_of(nodes: Iterable[NodeRecord]) -> list[PoolShare]:
    """The pools of all nodes that have a lease."""
    found = []
    for node in nodes:
        if not _is_live(node):
            continue
        for entry in _info(node).pools[:MOST_POOLS]:
            try:
                share = msgspec.convert(entry, PoolShare)
            except msgspec.ValidationError:
                continue
            found.append(msgspec.structs.replace(share, node=node.id, host=node.host))
    return found


def servers_of(nodes: Iterable[NodeRecord]) -> Counter[str]:
    """How many nodes serve each queue."""
    return Counter(queue for node in nodes if _is_live(node) for queue in set(_info(node).queues))


def _is_live(node: NodeRecord) -> bool:
    return node.lease_left > 0 and not node.sealed


def _info(node: NodeRecord) -> _Info:
    try:
        return msgspec.json.decode(node.info, type=_Info)
    except (msgspec.DecodeError, RecursionError):
        return _Info()


# --- for those who start machines ------------------------------------------------------------------------
class Wish(NamedTuple):
    """What a pool, a queue or the fleet would like to have. A slot is a place for one running job."""

    desired_slots: int
    desired_workers: int
    slots: int  # that there are now
    workers: int
    desired_nodes: int  # of the present kind


def scale_document(shares: Iterable[PoolShare]) -> Mapping[str, Any]:
    """The answer of `/scale`: for the fleet, each pool and each queue."""
    found = list(shares)
    pools: dict[str, list[PoolShare]] = {}
    queues: dict[str, list[PoolShare]] = {}
    for share in found:
        pools.setdefault(share.name, []).append(share)
        for queue in share.queues:
            queues.setdefault(queue, []).append(share)
    return {
        **wish(found)._asdict(),
        "nodes": len({share.node for share in found}),
        "pools": {name: wish(some)._asdict() for name, some in sorted(pools.items())},
        "queues": {name: wish(some)._asdict() for name, some in sorted(queues.items())},
    }


def wish(shares: Iterable[PoolShare]) -> Wish:
    """The sum over these. A queue that shares its pool with others has the pool's numbers."""
    found = list(shares)
    return Wish(
        desired_slots=sum(share.desired * share.concurrency for share in found),
        desired_workers=sum(share.desired for share in found),
        slots=sum(share.workers * share.concurrency for share in found),
        workers=sum(share.workers for share in found),
        desired_nodes=_nodes(found),
    )


def _nodes(shares: list[PoolShare]) -> int:
    """As many nodes as hold the pool that needs most of them: each brings its own `most` of every pool."""
    need = 0
    by_pool: dict[str, list[PoolShare]] = {}
    for share in shares:
        by_pool.setdefault(share.name, []).append(share)
    for some in by_pool.values():
        each = sum(min(share.most, MOST_EACH) for share in some) / len(some)
        total = sum(share.desired for share in some)
        need = max(
            need, math.ceil(total / max(1.0, each * FILLED)) if total > min(s.most for s in some) else 1
        )
    return need
