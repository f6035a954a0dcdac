"""What the pool has to reach, and whether it did: pure arithmetic over the results.

A ratio is taken within each round, where both sides met the same machine, and the median over the
rounds is judged. A round in which our pool gave no figure is a miss, whatever the others say.
"""

from collections.abc import Callable
from dataclasses import dataclass

from peers import OURS, PEERS, PROCESS_POOLS
from records import Results
from values import median

RIVALS = tuple(peer.name for peer in PROCESS_POOLS if peer.name != OURS)


@dataclass(frozen=True, slots=True)
class Figures:
    values: list[float]  # one per round
    against: str = ""
    trouble: str = ""


@dataclass(frozen=True, slots=True)
class Target:
    what: str
    scenario: str
    figures: Callable[[Results], Figures]
    needed: str  # ">= 20", "<= 0.40", "< 1"
    unit: str = "x"
    worst_counts: bool = False  # every round must reach it, not only the median

    def reached(self, figures: Figures) -> float:
        if not self.worst_counts:
            return median(figures.values)
        return min(figures.values) if self.needed.startswith(">") else max(figures.values)

    def met(self, figures: Figures) -> bool | None:
        """None when there is nothing to compare with."""
        if figures.trouble:
            return False
        if not figures.values:
            return None
        sign, bound = self.needed.split()
        reached, limit = self.reached(figures), float(bound)
        return {
            ">=": reached >= limit,
            "<=": reached <= limit,
            "<": reached < limit,
            ">": reached > limit,
        }[sign]


def plain(scenario: str, name: str) -> Callable[[Results], Figures]:
    def figures(results: Results) -> Figures:
        trouble = results.trouble(OURS, scenario, name)
        return Figures(results.series(OURS, scenario, name), trouble=trouble)

    return figures


def against(peer: str, scenario: str, name: str, their: str | None = None) -> Callable[[Results], Figures]:
    """Our value divided by one peer's, round by round."""

    def figures(results: Results) -> Figures:
        ours = results.by_round(OURS, scenario, name)
        theirs = results.by_round(peer, scenario, their or name)
        ratios = [ours[number] / theirs[number] for number in ours if number in theirs]
        label = PEERS[peer].label
        return Figures(ratios, label, results.trouble(OURS, scenario, name))

    return figures


def against_best(
    best: Callable[..., str], scenario: str, name: str, their: str | None = None
) -> Callable[[Results], Figures]:
    """Against the rival whose median is best (`max` or `min`)."""

    def figures(results: Results) -> Figures:
        found = {peer: results.series(peer, scenario, their or name) for peer in RIVALS}
        medians = {peer: median(series) for peer, series in found.items() if series}
        if not medians:
            return Figures([], trouble=results.trouble(OURS, scenario, name))
        return against(best(medians, key=medians.__getitem__), scenario, name, their)(results)

    return figures


TARGETS: tuple[Target, ...] = (
    Target("submit", "submit", against("ppe", "submit", "tasks_s"), ">= 20"),
    Target("submit, best peer", "submit", against_best(max, "submit", "tasks_s"), ">= 5"),
    Target("gathered by result()", "gather", against("ppe", "gather", "result"), ">= 15"),
    Target("gathered by wait()", "gather", against("ppe", "gather", "wait"), ">= 15"),
    Target("gathered by as_completed()", "gather", against("ppe", "gather", "as_completed"), ">= 15"),
    Target("gathered by asyncio.gather()", "gather", against("ppe", "gather", "asyncio"), ">= 15"),
    Target("round trip p50", "latency", against("ppe", "latency", "p50_us"), "<= 0.40"),
    Target("round trip p50, best peer", "latency", against_best(min, "latency", "p50_us"), "< 1"),
    Target(
        "map, default arguments, to the best hand-tuned chunk",
        "map",
        against_best(max, "map", "default", "best"),
        ">= 0.5",
    ),
    Target(
        "large map, default arguments, to the best hand-tuned chunk",
        "map-large",
        against_best(max, "map-large", "default", "best"),
        ">= 0.8",
    ),
    Target("1 ms tasks by submit, efficiency", "cpu", plain("cpu", "submit"), ">= 0.90", ""),
    Target("1 ms tasks by submit, best peer", "cpu", against_best(max, "cpu", "submit"), "> 1"),
    Target(
        "arrays there and back, MB/s", "arrays", against("ppe", "arrays", "there_and_back"), ">= 5"
    ),
    Target("arrays one way, MB/s", "arrays", against("ppe", "arrays", "one_way"), ">= 5"),
    Target("exits: share of the other tasks kept", "crash", plain("crash", "share"), ">= 1", "",
           worst_counts=True),
    Target("exits: time", "crash", against("pebble", "crash", "seconds"), "<= 0.5"),
    Target("segfaults: share of the other tasks kept", "segfault", plain("segfault", "share"),
           ">= 1", "", worst_counts=True),
    Target("segfaults: time", "segfault", against("pebble", "segfault", "seconds"), "<= 0.5"),
    Target("hangs: time to the ideal", "hang", plain("hang", "to_ideal"), "<= 1.1"),
    Target("recycling: time", "recycle", against("pebble", "recycle", "seconds"), "<= 0.25"),
    Target("killed idle worker replaced", "replace", plain("replace", "killed_ms"), "<= 15", " ms"),
    Target("worker of a dying task replaced", "replace", plain("replace", "died_ms"), "<= 15",
           " ms"),
    Target("memory of 8 idle workers", "memory", against("ppe", "memory", "total_mib"), "<= 1.5"),
    Target("first result, library imported", "startup", plain("startup", "first_ms"), "<= 150",
           " ms"),
    Target("first result, import included", "startup", plain("startup", "with_import_ms"),
           "<= 150", " ms"),
)  # fmt: skip
