"""What must be reached beside the peers of the same run, and whether it was. Pure: figures in, lines out."""

import statistics
from collections.abc import Callable, Iterable
from typing import NamedTuple

from figures import Figures
from peers import Peer

LEASE = 15.0
PYTHON_TIMES, BULLMQ_TIMES = 5.0, 2.0
PGQUEUER_TIMES, PROCRASTINATE_TIMES, HUEY_TIMES = 1.25, 20.0, 6.0
IN_PROCESS_P50, IN_PROCESS_P99 = 1.4, 2.0
NODES, NODES_TIMES = 4, 2.5
IDLE, AGAIN, RESCUED, AT_PACE = 1.0, 0.1, LEASE + 1.0, 2.0


class Aim(NamedTuple):
    """One line of the table; `met` is None where a figure is missing."""

    what: str
    needed: str
    measured: str
    met: bool | None


def aims(store: str, figures: Figures) -> list[Aim]:
    """Every aim that concerns a store."""
    return [
        *_drains(store, figures),
        *_latencies(store, figures),
        *_costs(store, figures),
        _limit(figures, store, ("worker_killed", "p99"), AGAIN, "worker killed: running again, p99"),
        _limit(figures, store, ("node_killed", "max"), RESCUED, "node killed: running on another, worst"),
        _limit(figures, store, ("machine_lost", "max"), RESCUED, "machine lost: running on another, worst"),
        *_troubles(store, figures),
        *_keyed(store, figures),
    ]


def _drains(store: str, figures: Figures) -> Iterable[Aim]:
    peers = figures.peers(store)
    if store == "redis":
        python = [peer for peer in peers if peer.name != "bullmq"]
        yield _times(figures, store, python, PYTHON_TIMES, "drain beside the best Python peer")
        yield _times(figures, store, _named(peers, "bullmq"), BULLMQ_TIMES, "drain beside BullMQ")
    elif store == "postgres":
        yield _times(figures, store, _named(peers, "pgqueuer"), PGQUEUER_TIMES, "drain beside PgQueuer")
        other = _named(peers, "procrastinate")
        yield _times(figures, store, other, PROCRASTINATE_TIMES, "drain beside Procrastinate")
    else:
        yield _times(figures, store, peers, HUEY_TIMES, "drain beside Huey")


def _latencies(store: str, figures: Figures) -> Iterable[Aim]:
    peers = figures.peers(store)
    for part, factor in (("p50", IN_PROCESS_P50), ("p99", IN_PROCESS_P99)):
        if store == "redis":
            outside = [peer for peer in peers if peer.outside]
            inside = [peer for peer in peers if not peer.outside]
            yield _below(figures, store, outside, 1.0, f"pickup {part} below peers that run jobs outside")
            yield _below(figures, store, inside, factor, f"pickup {part} beside the best in-process peer")
        else:
            yield _below(figures, store, peers, 1.0, f"pickup {part} below every peer")


def _costs(store: str, figures: Figures) -> Iterable[Aim]:
    peers = [peer for peer in figures.peers(store) if peer.name not in ("bullmq", "pgqueuer")]
    mine, (best, other) = figures.mine(store, "drain", "cpu"), _best(figures, peers, "drain", "cpu", min)
    met = None if mine is None or best is None else mine < best
    needed = "-" if best is None else f"< {best:.2f} s ({other})"
    yield Aim("CPU for 10,000 jobs below every Python peer", needed, _shown(mine, "s"), met)
    yield _limit(figures, store, ("latency", "idle"), IDLE, "idle node, part of a core")


def _troubles(store: str, figures: Figures) -> Iterable[Aim]:
    if store != "sqlite":  # a file does not go away
        for scenario, words in (("store_restarted", "store restarted"), ("store_silent", "store cut off")):
            yield _limit(figures, store, (scenario, "max"), AT_PACE, f"{words}: at its old pace, worst")


def _keyed(store: str, figures: Figures) -> Iterable[Aim]:
    rounds = figures.keyed(store)
    rates = {nodes: statistics.median(each["rate"] for each in found) for nodes, found in rounds.items()}
    ratios = {nodes: rate / rates[1] for nodes, rate in rates.items() if rates.get(1) and nodes > 1}
    if store == "postgres":
        yield _shared_keys(
            ratios.get(NODES), max((each["cores"] for each in rounds.get(NODES, ())), default=0)
        )
        total = sum(each["deadlocks"] for found in rounds.values() for each in found)
        met = (not total) if ratios or total else None  # one node alone cannot show it
        yield Aim("shared keys: deadlocks", "0", f"{total}" if rounds else "-", met)
    if store != "sqlite":  # all nodes of a file share its one writer
        lowest = min(ratios.values(), default=None)
        met = None if lowest is None else lowest >= 1.0
        yield Aim("shared keys: several nodes beside one, lowest", "≥ 1 times", _times_shown(lowest), met)


def _shared_keys(ratio: float | None, cores: int) -> Aim:
    """Four nodes need a core each and one for the server; with fewer the figure is shown and not judged."""
    enough = cores > NODES
    measured = _times_shown(ratio) + ("" if ratio is None or enough else f", not judged: {cores} cores")
    met = ratio >= NODES_TIMES if ratio is not None and enough else None
    return Aim(f"shared keys: {NODES} nodes beside one", f"≥ {NODES_TIMES:g} times", measured, met)


# --- sorts of aim ----------------------------------------------------------------------------------------
def _times(figures: Figures, store: str, peers: list[Peer], factor: float, what: str) -> Aim:
    mine, (best, other) = figures.mine(store, "drain", "rate"), _best(figures, peers, "drain", "rate", max)
    if mine is None or best is None:
        return Aim(what, f"≥ {factor:g} times", "-", None)
    named = f"{what} ({other})" if len(peers) > 1 else what
    return Aim(named, f"≥ {factor:g} times", f"{mine / best:.2f} times", mine >= factor * best)


def _below(figures: Figures, store: str, peers: list[Peer], factor: float, what: str) -> Aim:
    part = what.split()[1]
    mine, (best, other) = figures.mine(store, "latency", part), _best(figures, peers, "latency", part, min)
    if mine is None or best is None:
        return Aim(what, "-", _shown(mine, "ms"), None)
    if factor == 1.0:
        return Aim(what, f"< {best:.2f} ms ({other})", _shown(mine, "ms"), mine < best)
    needed = f"≤ {factor:g} times {best:.2f} ms ({other})"
    return Aim(what, needed, f"{mine:.2f} ms, {mine / best:.2f} times", mine <= factor * best)


def _limit(figures: Figures, store: str, source: tuple[str, str], limit: float, what: str) -> Aim:
    (scenario, part), unit = source, "%" if "idle" in source else "s"
    mine = figures.mine(store, scenario, part)
    lost = figures.mine(store, scenario, "lost") or 0
    met = None if mine is None and not lost else mine is not None and mine <= limit and not lost
    measured = _shown(mine, unit) + (f", {lost:g} not within the cap" if lost else "")
    return Aim(what, f"≤ {limit:g} {unit}", measured, met)


def _best(
    figures: Figures, peers: list[Peer], scenario: str, part: str, better: Callable[..., float]
) -> tuple[float | None, str]:
    known = {peer.name: figures.median(peer, scenario, part) for peer in peers}
    have = {name: value for name, value in known.items() if value is not None}
    if not have:
        return None, ""
    value = better(have.values())
    return value, next(name for name in have if have[name] == value)


def _named(peers: list[Peer], name: str) -> list[Peer]:
    return [peer for peer in peers if peer.name == name]


def _times_shown(ratio: float | None) -> str:
    return "-" if ratio is None else f"{ratio:.2f} times"


def _shown(value: float | None, unit: str) -> str:
    return "-" if value is None else f"{value:.3g} {unit}"
