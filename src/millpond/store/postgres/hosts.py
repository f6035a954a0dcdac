"""What a process knows of the servers behind a URL: which one answered last, which connections are doubtful.

Shared by every store of the process with the same address: a node's heartbeat has its own store, and what
either learns of a dead or demoted server spares the other from finding out by itself. It never connects and
never waits; two threads at the same moment lose at most one hint, so it needs no lock and survives a fork.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary

from millpond.store.postgres.url import Place, PostgresAddress

_known: WeakValueDictionary[str, Hosts] = WeakValueDictionary()


class Hosts:
    """The servers of one address. `generation` counts how often connections to them proved dead."""

    def __init__(self, address: PostgresAddress) -> None:
        self._places, self._parameters = address.places, address.parameters
        self._first: Place | None = None  # answered last
        self._last: Place | None = None  # failed last
        self.generation = 0

    def parameters(self) -> dict[str, Any]:
        """What the driver is given for a new connection."""
        if len(self._places) < 2:
            return self._parameters
        hosts, addresses, ports = zip(*self.ordered(), strict=True)
        lists = {"host": hosts, "hostaddr": addresses, "port": ports}
        return self._parameters | {name: ",".join(values) for name, values in lists.items() if any(values)}

    def ordered(self) -> list[Place]:
        """The servers, the one that answered last first and the one that failed last at the end."""
        return sorted(self._places, key=lambda place: (place == self._last, place != self._first))

    def answered(self, host: str, port: int) -> None:
        """A connection to this server was made."""
        place = self._named(host, port)
        self._first = place
        if place == self._last:
            self._last = None

    def failed(self, host: str, port: int, generation: int) -> bool:
        """A connection of this generation has proved dead, or its server read-only: is that new?

        Ten calls may find the same dead server one after the other. Only the first begins a new generation:
        the next would throw away connections that were made since, to a server that answers
        (test_after_one_dead_connection_no_other_is_tried).
        """
        if generation != self.generation:
            return False
        self.generation += 1
        self._first, self._last = None, self._named(host, port)
        return True

    def _named(self, host: str, port: int) -> Place | None:
        for place in self._places:
            if host in (place.host, place.address) and place.port in ("", str(port)):
                return place
        return None


def hosts_of(address: PostgresAddress) -> Hosts:
    """The knowledge of this process about an address."""
    found = _known.get(address.dsn)
    if found is None:
        found = _known.setdefault(address.dsn, Hosts(address))
    return found
