"""No step of a store grows with the number of jobs that expire: others are served in between."""

from __future__ import annotations

from tests.stores.acting import Node, put_many, tally, travel

STORM = 20_000  # more than three times what one exchange may end
BULK = 10_000
MOST = 6_000  # jobs that one exchange may end on its way


def test_an_exchange_among_very_many_expired_jobs_ends_a_bounded_number_of_them(store):
    """All in one step held the lock of an SQLite file for longer than others wait for it."""
    for _ in range(STORM // BULK):
        put_many(store, BULK, expires=1.0)
    travel(store, 5.0)
    node = Node(store)
    left = STORM
    while left:
        assert node.claim(1) == []
        before, left = left, tally(store).get("queued", 0)
        assert before - MOST <= left < before
    assert tally(store) == {"cancelled": STORM}
