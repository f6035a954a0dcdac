"""How many jobs a pool may claim now: enough that no worker waits for the store, and little more.

A claimed job is out of reach for other nodes and for its place in line, so what is claimed ahead is worth
at most a second of work, of long jobs nothing at all, and nothing waits behind workers that are stuck.
"""

from __future__ import annotations

SHORTEST = 0.05  # seconds of work worth claiming ahead, however quick the store is
LONGEST = 1.0
ROUNDS = 4.0  # round trips to the store that the work claimed ahead should last for
MOST = 2000  # jobs claimed ahead for one worker, however short they are
BATCH = 1000  # jobs of one claim
MOST_BYTES = 16 << 20  # of jobs in one claim, and of those claimed ahead, as far as can be foretold
MEMORY = 16  # jobs by whose sizes the next are foretold


def horizon(round_trip: float) -> float:
    """The seconds of work to have in hand when asking the store takes this long."""
    return min(max(ROUNDS * round_trip, SHORTEST), LONGEST)


def fitting(size: float) -> int:
    """How many jobs of about this size go together: always one."""
    return max(1, int(MOST_BYTES / max(size, 1.0)))


def wanted(
    workers: int,
    concurrency: int,
    run: float | None,
    round_trip: float,
    size: float = 0.0,
    *,
    long: int = 0,
) -> int:
    """How many jobs a pool should hold: what its workers can run at once, and some ahead.

    `run` is what a job takes, None while nobody knows: it might be long, so nothing is claimed ahead. `size`
    is what its payload and its result take, which the node holds while the one or the other waits. `long` of
    its jobs run for more than LONGEST already: behind these nothing is claimed.
    """
    at_once = workers * concurrency
    if run is None:
        return at_once
    ahead = workers * min(MOST, int(horizon(round_trip) / max(run, 1e-6)))
    if long:
        ahead = ahead * max(0, at_once - long) // at_once
    return at_once + min(ahead, fitting(size))


def is_stuck(long: int, places: int, unbegun: int) -> bool:
    """Does what was claimed ahead wait behind jobs of which each runs for more than LONGEST already? Nobody
    knows for how long it would: others may have it meanwhile."""
    return unbegun > 0 and long >= places


def beside(held: int, loners: int, places: int) -> int:
    """Of the jobs in hand those that take the room of others. Jobs that must run alone have workers of their
    own; only if they are more than the pool could run at once nothing more is claimed beside them."""
    return held - min(loners, places)


def to_claim(want: int, held: int, at_once: int, size: float = 0.0) -> int:
    """How many to ask for. With plenty in hand it waits until a whole batch fits: fewer, larger claims. Of
    large jobs it may be fewer than there is room for: the next round asks for more."""
    room = want - held
    if room <= 0 or (held >= at_once and room * 4 < want):
        return 0
    return min(room, BATCH, fitting(size))


def share(limit: int, queues: int, turn: int) -> list[int]:
    """Divide a claim among queues; what cannot be divided goes to each of them in turn."""
    each, rest = divmod(limit, queues)
    return [each + ((index - turn) % queues < rest) for index in range(queues)]


def learn(known: float | None, measured: float) -> float:
    """The estimate of a job's run time after one more measurement. A single long one moves it little."""
    if known is None:
        return measured
    most = 10 * known + 0.001
    return known + ((min(most, measured)) - known) * 0.1


def learn_size(known: float, total: int, jobs: int) -> float:
    """The estimate of a size after so many more jobs were seen, with so many bytes in all."""
    return known + (total / jobs - known) * jobs / (jobs + MEMORY)
