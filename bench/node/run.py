"""The node benchmark: Millpond and its peers through every scenario on the same servers, then the tables.

Peers take turns within a round and each round begins with another one, so that a machine that slows down
slows all of them. Raw results go to build/bench-node, one JSON line each. Nothing else may run meanwhile.
"""

import argparse
import os
import platform
import signal
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT), str(Path(__file__).resolve().parent)]

import crash  # noqa: E402
import keyed  # noqa: E402
import report  # noqa: E402
import speed  # noqa: E402
import trouble  # noqa: E402
from environments import Unavailable, ensure  # noqa: E402
from figures import Figures, append, load  # noqa: E402
from peers import PEERS, STORES, Peer  # noqa: E402
from places import Places  # noqa: E402
from processes import NodeUnderTest  # noqa: E402
from sizes import FULL, QUICK, Sizes  # noqa: E402

from tests.servers.process import Missing  # noqa: E402

SPEED: dict[str, Callable[[Places, Peer, Sizes], dict[str, Any]]] = {
    "drain": speed.drain,
    "latency": speed.latency,
}
CRASH: dict[str, Callable[..., dict[str, Any]]] = {
    "worker_killed": crash.worker_killed,
    "node_killed": crash.node_killed,
    "machine_lost": crash.machine_lost,
}
TROUBLE: dict[str, Callable[[Places, Peer, Sizes], dict[str, Any]]] = {
    "store_restarted": trouble.store_restarted,
    "store_silent": trouble.store_silent,
}
SCENARIOS = [*SPEED, *CRASH, *TROUBLE, "keyed"]
DOCUMENT = ROOT / "docs" / "benchmarks-node.md"


def main() -> None:
    signal.signal(signal.SIGTERM, lambda number, _: sys.exit(128 + number))  # so that servers are ended
    options = _options()
    figures = load(options.report) if options.report else Run(options).figures
    text = report.markdown(figures)
    print(text)
    if options.write:
        DOCUMENT.write_text(text + "\n")
        _say(f"written: {DOCUMENT.relative_to(ROOT)}")


def _options() -> argparse.Namespace:
    names = list(dict.fromkeys(peer.name for peer in PEERS))
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="one round of small sizes")
    parser.add_argument("--rounds", type=int, help="of drain and latency: 3, or 1 with --quick")
    parser.add_argument("--only", metavar="SCENARIO,...", help=", ".join(SCENARIOS))
    parser.add_argument("--store", metavar="NAME,...", help=", ".join(STORES))
    parser.add_argument("--peer", metavar="NAME,...", help=", ".join(names))
    parser.add_argument("--nodes", type=_numbers, metavar="N,...", help="of keyed: 1,2,4,8")
    parser.add_argument("--keys", type=int, help="of keyed: 2000")
    parser.add_argument("--seconds", type=float, help="of each part of keyed: 20")
    parser.add_argument("--workers", type=int, help="of each node of keyed: 8")
    parser.add_argument("--write", action="store_true", help="also write docs/benchmarks-node.md")
    parser.add_argument("--report", type=Path, metavar="FILE", help="only tabulate kept results")
    options = parser.parse_args()
    options.only = _named(parser, options.only, SCENARIOS)
    options.store = _named(parser, options.store, list(STORES))
    options.peer = _named(parser, options.peer, names)
    options.rounds = options.rounds or (1 if options.quick else 3)
    options.sizes = _sizes(options)
    if options.write and options.quick:
        parser.error("--quick is not for publication: leave one of --quick and --write out")
    return options


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(word) for word in text.split(","))


def _sizes(options: argparse.Namespace) -> Sizes:
    """How much is measured, with what the command line has of it."""
    given = {
        "nodes": options.nodes,
        "keys": options.keys,
        "keyed": options.seconds,
        "workers": options.workers,
    }
    chosen = {name: value for name, value in given.items() if value}
    return (QUICK if options.quick else FULL)._replace(**chosen)


def _named(parser: argparse.ArgumentParser, text: str | None, known: list[str]) -> list[str]:
    names = text.split(",") if text else known
    for name in names:
        if name not in known:
            parser.error(f"unknown name {name!r}; there are: {', '.join(known)}")
    return names


class Run:
    """One run: what is asked for, on servers that end with it."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.sizes = options.sizes
        self.figures = Figures(_setting(options))
        self.path = ROOT / "build" / "bench-node" / time.strftime("%Y%m%d-%H%M%S.jsonl")
        append(self.path, self.figures.setting)
        self.peers = self._present(options)
        self.places = Places()
        try:
            for store in options.store:
                peers = [peer for peer in self.peers if peer.store == store]
                self.places.ready(store)
                self._speed(peers, [name for name in SPEED if name in options.only], options.rounds)
                self._crashes(peers, [name for name in CRASH if name in options.only])
                self._troubles(peers, [name for name in TROUBLE if name in options.only])
                if "keyed" in options.only:
                    self._keyed(peers, options.rounds)
        finally:
            NodeUnderTest.kill_all()
            self.places.remove()
        _say(f"kept: {self.path.relative_to(ROOT)}")

    def _present(self, options: argparse.Namespace) -> list[Peer]:
        """The peers that are asked for and can be had; every environment is made before the first run."""
        present = []
        for peer in PEERS:
            if peer.name in options.peer and peer.store in options.store:
                try:
                    ensure(peer.environment)
                    present.append(peer)
                except Unavailable as error:
                    self._keep(peer, "all", {"error": f"skipped: {error}"})
        return present

    def _speed(self, peers: Sequence[Peer], scenarios: Sequence[str], rounds: int) -> None:
        for number in range(rounds):
            turn = number % len(peers) if peers else 0
            for name in scenarios:
                for peer in (*peers[turn:], *peers[:turn]):
                    self._one(peer, name, SPEED[name])

    def _crashes(self, peers: Sequence[Peer], scenarios: Sequence[str]) -> None:
        """Millpond alone, since its times are short; then the peers side by side."""
        others = [peer for peer in peers if peer.name != "millpond" and peer.safe]
        for name in scenarios:
            for peer in peers:
                if peer.name == "millpond":
                    self._one(peer, name, CRASH[name])
            if name == "machine_lost":  # to a peer it is the same as a killed node
                continue
            results = crash.side_by_side(self.places, others, self.sizes, CRASH[name])
            for peer, result in zip(others, results, strict=True):
                self._keep(peer, name, result)

    def _troubles(self, peers: Sequence[Peer], scenarios: Sequence[str]) -> None:
        for name in scenarios:
            for peer in peers:
                if peer.name == "millpond" and peer.store != "sqlite":
                    self._one(peer, name, TROUBLE[name])

    def _keyed(self, peers: Sequence[Peer], rounds: int) -> None:
        """One node, then several, round by round: what slows the machine slows all of them."""
        for peer in peers:
            if peer.name == "millpond" and peer.store != "sqlite":
                for nodes in self.sizes.nodes * rounds:
                    self._one(peer, "keyed", partial(keyed.keyed, nodes=nodes), nodes=nodes)

    def _one(self, peer: Peer, name: str, scenario: Callable[..., dict[str, Any]], **facts: int) -> None:
        try:
            result = scenario(self.places, peer, self.sizes)
        except Missing:
            raise
        except Exception as error:  # the other peers are still worth measuring
            result = {"error": f"{type(error).__name__}: {error}"[-600:]}
        self._keep(peer, name, facts | result)

    def _keep(self, peer: Peer, name: str, result: dict[str, Any]) -> None:
        record = {"peer": peer.key, "scenario": name, **result}
        self.figures.records.append(record)
        append(self.path, record)
        shown = {key: round(value, 4) if isinstance(value, float) else value for key, value in result.items()}
        shown.pop("times", None)
        _say(f"{peer.key:24} {name:14} {shown}")


def _setting(options: argparse.Namespace) -> dict[str, str]:
    """Everything a reader needs to judge the figures; no path or name of the machine."""
    return {
        "date": time.strftime("%Y-%m-%d"),
        "rounds": f"{options.rounds}" + (", small sizes (quick)" if options.quick else ""),
        "machine": f"{len(os.sched_getaffinity(0))} cores, shared by server, node and producer",
        "kernel": f"{platform.system()} {platform.release().partition('-')[0]}",
        "Python": platform.python_version(),
        "load before the run": f"{os.getloadavg()[0]:.2f}",
    }


def _say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)


if __name__ == "__main__":
    main()
