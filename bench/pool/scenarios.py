"""The list of scenarios, in the order they run, with the limit on one run of each."""

from importlib import import_module
from typing import Any, NamedTuple

from peer import Peer
from sizes import Sizes
from values import Values


class Scenario(NamedTuple):
    function: str  # imported only by the run that needs it
    headline: str  # the value shown while running
    limit: float = 60  # seconds, after which the run is killed and reported

    def measure(self, peer: Peer, sizes: Sizes) -> Values:
        module, _, name = self.function.partition(".")
        function: Any = getattr(import_module(module), name)
        values: Values = function(peer, sizes)
        return values


SCENARIOS: dict[str, Scenario] = {
    "submit": Scenario("speed.submit", "tasks_s"),
    "gather": Scenario("gather.gather", "wait", limit=120),
    "latency": Scenario("speed.latency", "p50_us"),
    "map": Scenario("speed.map_small", "best"),
    "map-large": Scenario("speed.map_large", "best", limit=120),
    "cpu": Scenario("speed.cpu", "submit"),
    "arrays": Scenario("speed.arrays", "there_and_back", limit=120),
    "crash": Scenario("failures.crash", "seconds", limit=30),
    "segfault": Scenario("failures.segfault", "seconds", limit=30),
    "hang": Scenario("failures.hang", "seconds", limit=30),
    "recycle": Scenario("failures.recycle", "seconds", limit=30),
    "replace": Scenario("failures.replace", "killed_ms"),
    "memory": Scenario("footprint.memory", "total_mib"),
    "startup": Scenario("footprint.startup", "first_ms", limit=30),
}
