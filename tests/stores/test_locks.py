"""What a transaction waits for: a claim, a settlement or a rescue passes over whatever another has locked."""

from __future__ import annotations

import threading
from typing import Any

import pytest

from millpond.errors import StoreBusy
from millpond.ids import GREATEST
from millpond.job import JobState, Slot
from millpond.store.protocol import Claim, Filter, Progress, Retention, Started, Tick
from millpond.store.sql import after_end, search
from millpond.store.sql.enqueue import enqueue
from tests.stores.acting import Node, dead_job, new_job, put, put_many, state, tally, travel

ONE = (Slot("s", 1),)


def whole(store, node):
    """The jobs that a node holds."""
    return store.get([job.id for job in store.held(node).jobs])


def ids(jobs):
    return [job.id for job in jobs]


def lock(other, store, what):
    other.execute(f"SELECT * FROM {store.schema}.{what} FOR UPDATE".encode())


def test_a_key_that_is_asked_for_in_an_open_transaction_delays_no_end(shared, other):
    node = Node(shared)
    put(shared, new_job(unique="k"))
    job = node.claim_one()
    (answer,) = shared.enqueue([new_job(unique="k")], transaction=other)
    assert not answer.created
    node.settle(job)
    assert state(shared, job) == "completed"


def test_a_key_that_lasted_for_a_time_is_taken_over_when_that_is_over(store):
    put(store, new_job(unique="k", unique_for=10.0))
    travel(store, 11)
    (answer,) = store.enqueue([new_job(unique="k", unique_for=10.0)])
    assert answer.created


def test_the_parent_of_an_uncommitted_job_waits_alone(shared, other):
    node = Node(shared)
    put_many(shared, 3)
    parent, *others = node.claim()
    shared.enqueue([new_job(depends_on=(parent.id,))], transaction=other)
    answer = node.exchange(settlements=[node.verdict(job) for job in (parent, *others)])
    assert (answer.stale, answer.deferred) == ((), (parent.id,))
    assert [state(shared, job) for job in others] == ["completed", "completed"]
    other.commit()
    node.settle(parent)
    assert tally(shared) == {"completed": 3, "queued": 1}


def test_two_transactions_may_enqueue_behind_the_same_job_at_once(shared, other):
    """As soon as it is known to have dependents; the first of all has to be committed."""
    node = Node(shared)
    put(shared, new_job())
    parent = node.claim_one()
    put(shared, new_job(depends_on=(parent.id,)))
    shared.enqueue([new_job(depends_on=(parent.id,))], transaction=other)
    put(shared, new_job(depends_on=(parent.id,)))
    assert node.exchange(settlements=[node.verdict(parent)]).deferred == (parent.id,)
    other.commit()
    node.settle(parent)
    assert tally(shared) == {"completed": 1, "queued": 3}


def test_a_start_or_progress_that_is_locked_out_is_deferred_and_not_stale(shared, other):
    node = Node(shared)
    put(shared, new_job())
    job = node.claim_one()
    shared.enqueue([new_job(depends_on=(job.id,))], transaction=other)
    answer = node.exchange(started=[Started(job.id, job.token)], progress=[Progress(job.id, job.token, b"1")])
    assert (answer.stale, answer.deferred) == ((), (job.id, job.id))


def test_a_claim_passes_over_a_slot_that_is_locked(shared, other):
    node = Node(shared)
    busy, free = put(shared, new_job(slots=ONE), new_job(slots=(Slot("t", 1),)))
    claimed = node.claim()
    assert ids(claimed) == [busy, free]
    node.settle(*claimed)
    first, second = put(shared, new_job(slots=ONE), new_job(slots=(Slot("t", 1),)))
    lock(other, shared, "slots WHERE name = 's'")
    assert ids(node.claim()) == [second]
    other.rollback()
    assert ids(node.claim()) == [first]


def test_a_claim_passes_over_a_slot_that_is_just_being_made(shared, other):
    node = Node(shared)
    jobs = [new_job(slots=ONE), new_job(slots=(Slot("t", 1),))]
    first, second = (answer.id for answer in shared.enqueue(jobs, transaction=other))
    other.commit()
    lock_of_s = f"hashtextextended('{shared.schema} slot s', 0)"
    other.execute(f"SELECT pg_advisory_xact_lock({lock_of_s})".encode())
    other.execute(f"INSERT INTO {shared.schema}.slots (name, capacity) VALUES ('s', 1)".encode())
    assert ids(node.claim()) == [second]
    other.rollback()
    assert ids(node.claim()) == [first]


def test_a_parked_job_whose_slot_is_locked_keeps_no_other_waiting(shared, other):
    node = Node(shared)
    put(shared, *(new_job(slots=(Slot(name, 1),)) for name in "st"))
    holders = node.claim()
    behind_s, behind_t = put(shared, *(new_job(slots=(Slot(name, 1),)) for name in "st"))
    assert node.claim() == []
    node.settle(*holders)
    lock(other, shared, "slots WHERE name = 's'")
    assert ids(node.claim()) == [behind_t]
    other.rollback()
    assert ids(node.claim()) == [behind_s]


def test_an_enqueue_in_an_open_transaction_locks_no_slot(shared, other):
    node = Node(shared)
    put_many(shared, 2, slots=ONE)
    job = node.claim_one()
    shared.enqueue([new_job(slots=(Slot("s", 2),)), new_job(slots=(Slot("new", 1),))], transaction=other)
    node.settle(job)
    assert len(node.claim()) == 1


def test_a_claim_passes_over_a_rate_that_another_node_spends(shared, other):
    node = Node(shared)
    shared.configure(queue="slow", rate=100.0)
    put(shared, new_job(queue="slow"))
    (quick,) = put(shared, new_job(queue="quick"))
    lock(other, shared, "queues")
    answer = node.exchange(claims=[Claim("slow", 5), Claim("quick", 5)])
    assert ids(answer.claimed) == [quick]
    other.rollback()
    assert len(node.claim(5, "slow")) == 1


def test_two_exchanges_that_free_and_take_each_others_slots_never_wait_crosswise(shared):
    """Each holds what the other wants next: both frees are done before either claims."""
    one, two = Node(shared, "one"), Node(shared, "two")
    for round_ in range(20):
        put(shared, *(new_job(queue=queue, slots=(Slot(queue, 1),)) for queue in "ab"))
        first, second = one.claim_one("a"), two.claim_one("b")
        put(shared, *(new_job(queue=queue, slots=(Slot(queue, 1),)) for queue in "ab"))
        found: list[Any] = []
        threads = [
            threading.Thread(target=swap, args=(one, first, "b", found)),
            threading.Thread(target=swap, args=(two, second, "a", found)),
        ]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert len(found) == 2, round_
        for node in (one, two):
            node.settle(*whole(shared, node.name))
            for queue in "ab":
                node.settle(*node.claim(10, queue))
    assert sum(retried(shared).values()) == 0


def swap(node, job, queue, found):
    answer = node.exchange(settlements=[node.verdict(job)], claims=[Claim(queue, 1)])
    found.append(answer)


def retried(store):
    return getattr(store, "retries", {})


def test_a_claim_leaves_an_expired_job_whose_slot_is_locked_to_the_next(shared, other):
    """Waiting for the slot, with others freed in the same exchange, two nodes would wait for each other."""
    node = Node(shared)
    put(shared, new_job(slots=ONE))
    node.claim_one()
    late, later = put(shared, *(new_job(slots=ONE, expires=1.0) for _ in range(2)))
    (unbound,) = put(shared, new_job(queue="other", expires=1.0))
    (free,) = put(shared, new_job(queue="other"))
    travel(shared, 2)
    lock(other, shared, "slots WHERE name = 's'")
    assert ids(node.claim(5, "other")) == [free]
    assert [state(shared, job) for job in (late, later, unbound)] == ["queued", "queued", "cancelled"]
    other.rollback()
    node.claim(5, "other")
    assert [state(shared, job) for job in (late, later)] == ["cancelled", "cancelled"]
    assert slots_of(shared) == [("s", 1, 0)]


def slots_of(store):
    """Each slot with how many jobs hold it, and are parked at it."""
    with store._connection() as connection:
        return connection.execute(f"SELECT name, used, parked FROM {store.schema}.slots".encode()).fetchall()


@pytest.mark.parametrize("runs", [False, True])
def test_a_job_that_is_locked_keeps_no_other_from_being_cancelled(shared, other, runs):
    node = Node(shared)
    locked, *others = put_many(shared, 3)
    if runs:
        node.claim(3)
    shared.enqueue([new_job(depends_on=(locked,))], transaction=other)
    with pytest.raises(StoreBusy, match="2 jobs were done before") as caught:
        shared.cancel(Filter())
    assert caught.value.done == 2
    if runs:
        assert set(node.exchange(claims=[Claim("default", 1)]).cancelling) == set(others)
    else:
        assert [state(shared, job) for job in others] == ["cancelled", "cancelled"]
    other.rollback()
    assert shared.cancel(Filter()) == 1


def test_a_tick_whose_key_is_held_waits_for_no_lock_on_it(shared, other):
    """It would keep the keys before it locked, and the jobs that hold them from ending."""
    put(shared, new_job(unique="k"))
    lock(other, shared, "uniques")
    assert shared.plan([Tick("every", 1, new_job(unique="k"))]) == [True]
    assert tally(shared) == {"queued": 1}


def test_a_tick_takes_over_a_key_that_has_lapsed(store):
    put(store, new_job(unique="k", unique_for=10.0))
    travel(store, 11)
    assert store.plan([Tick("every", 1, new_job(unique="k"))]) == [True]
    assert tally(store) == {"queued": 2}


def test_dependents_that_are_locked_hold_up_no_dependents_of_other_jobs(shared, other, monkeypatch):
    """More parents with a locked dependent than one step goes on with, and one whose dependents are free."""
    monkeypatch.setattr(after_end, "CASCADES", 200)  # more than a page of their table has, as ever
    node = Node(shared)
    parents = put_many(shared, 2 * after_end.CASCADES + 1)
    (*locked, free) = put(shared, *(new_job(queue="behind", depends_on=(parent,)) for parent in parents))
    lock(other, shared, "jobs WHERE state = 'blocked'")
    node.settle(*node.claim(len(parents)))
    other.rollback()
    shared.enqueue([new_job(queue="behind", depends_on=tuple(locked))], transaction=other)
    while state(shared, free) == "blocked":
        node.exchange(claims=[Claim("empty", 1)])
    assert {state(shared, job) for job in locked} == {"blocked"}


def test_a_node_in_a_long_exchange_keeps_no_other_dead_node_from_being_rescued(shared, other):
    busy, dead = Node(shared, "a-busy", lease=0.001), Node(shared, "b-dead", lease=0.001)
    put_many(shared, 2)
    busy.claim_one()
    dead.claim_one()
    Node(shared, "rescuer", lease=60)
    gone = [busy.name, dead.name]
    lock(other, shared, "exchanges WHERE node = 'a-busy'")
    assert shared.rescue("rescuer", gone).nodes == ("b-dead",)
    other.rollback()
    assert shared.rescue("rescuer", gone).nodes == ("a-busy",)


def test_a_lease_is_renewed_while_an_exchange_of_its_node_goes_on(shared, other):
    node = Node(shared)
    lock(other, shared, "exchanges")
    node.renew()


def test_a_job_that_is_locked_is_left_to_the_next_rescue(shared, other):
    dead = Node(shared, "dead", lease=0.001)
    parent, free = put_many(shared, 2)
    dead.claim(2)
    Node(shared, "rescuer", lease=60)
    shared.enqueue([new_job(depends_on=(parent,))], transaction=other)
    assert shared.rescue("rescuer", gone=["dead"]).jobs == 1
    assert (state(shared, parent), state(shared, free)) == ("running", "queued")
    other.commit()
    assert shared.rescue("rescuer").jobs == 1
    assert state(shared, parent) == "queued"


def test_a_dependent_that_is_locked_starts_later_and_holds_up_no_other(shared, other):
    node = Node(shared)
    (parent,) = put(shared, new_job())
    one, two = put(shared, *(new_job(queue="behind", depends_on=(parent,)) for _ in range(2)))
    shared.enqueue([new_job(queue="behind", depends_on=(one,))], transaction=other)
    node.run()
    assert (state(shared, one), state(shared, two)) == ("blocked", "queued")
    other.commit()
    node.reach_all()
    assert state(shared, one) == "queued"


# --- bounded steps, on every store -----------------------------------------------------------------------
def test_a_claim_ends_only_a_page_of_those_that_expired(store, node):
    put_many(store, 8000, expires=1.0, fresh=True)
    (alive,) = put(store, new_job())
    travel(store, 1)
    first = node.exchange(claims=[Claim("default", 1)])
    assert (first.claimed, first.more) == ((), True)
    assert ids(claimed_at_once(node, 1)) == [alive]


def claimed_at_once(node, limit):
    """What a node at rest gets, as long as each claim asks for the next."""
    claimed: list[Any] = []
    more = True
    while more and len(claimed) < limit:
        answer = node.exchange(claims=[Claim("default", limit - len(claimed))])
        claimed += answer.claimed
        more = answer.more
    return claimed


def test_a_claim_puts_only_a_page_of_those_that_are_due_in_line_and_asks_for_the_next_at_once(store, node):
    """A node at rest claims once a second: very many of another queue would keep its own jobs waiting."""
    put_many(store, 12_000, queue="elsewhere", delay=1.0, fresh=True)
    (later,) = put(store, new_job(delay=1.5))
    travel(store, 2)
    first = node.exchange(claims=[Claim("default", 1)])
    assert (first.claimed, first.more) == ((), True)
    assert 0 < tally(store, "elsewhere")["scheduled"] < 12_000
    assert ids(claimed_at_once(node, 1)) == [later]


def test_a_claim_looks_at_a_page_of_those_it_cannot_run_and_asks_for_the_next_at_once(store, node):
    put_many(store, 8000, task="unknown", fresh=True)
    (known,) = put(store, new_job())
    claimed: list[str] = []
    more = True
    while more and not claimed:
        answer = node.exchange(claims=[Claim("default", 1, ("unknown",))])
        claimed, more = ids(answer.claimed), answer.more
    assert claimed == [known]


def test_a_claim_looks_at_a_page_of_the_slots_with_room_and_asks_for_the_next_at_once(store, node):
    slots = [(Slot(f"key-{number}", 1),) for number in range(600)]
    put(store, *(new_job(slots=one, run_at=at) for at, one in enumerate(slots)))
    first = claimed_at_once(node, 600)
    put(store, *(new_job(slots=one, run_at=at) for at, one in enumerate(slots)))
    node.settle(*first)
    assert len(claimed_at_once(node, 700)) == 600


@pytest.mark.parametrize("verb", ["cancel", "discard"])
def test_each_page_begins_below_the_last_of_the_one_before(sql_store, monkeypatch, verb):
    """From the newest again, every page would read all that the pages before have dealt with."""
    began: list[str] = []
    real = search.look

    def paged(chosen, limit, below):
        began.append(below)
        return (yield from real(chosen, 2, below))

    monkeypatch.setattr(search, "look", paged)
    ids = sorted(put_many(sql_store, 4))
    if verb == "cancel":
        assert sql_store.cancel(Filter()) == 4
    else:
        node = Node(sql_store)
        node.settle(*node.claim())
        assert sql_store.prune(Retention(), Filter(states=(JobState.COMPLETED,))) == 4
    assert began[:3] == [GREATEST, ids[2], ids[0]]


def test_a_parent_that_is_replayed_between_two_looks_is_found(shared):
    """It is in neither table when each is looked at: not in the line yet, and in the history no more."""
    node = Node(shared)
    parent = dead_job(shared, node)
    job = new_job(depends_on=(parent,))

    def steps(now):
        made = enqueue([job], now)
        answer: Any = None
        is_replayed = False
        try:
            while True:
                request = made.send(answer)
                answer = yield request
                if not is_replayed and getattr(request, "name", "") == "parents":
                    is_replayed = shared.replay(Filter(ids=(parent,))) == 1
        except StopIteration as end:
            return end.value

    (stored,) = shared.write(steps)
    assert stored.created
    assert (state(shared, parent), state(shared, job.id)) == ("queued", "blocked")


def test_an_expired_job_is_never_run_though_its_page_has_not_come(store, node):
    put_many(store, 3000, expires=1.0, fresh=True)
    travel(store, 1)
    for _ in range(10):
        assert node.claim(50) == []
    assert tally(store) == {"cancelled": 3000}


def test_a_replayed_parent_keeps_the_dependents_that_its_fall_has_not_reached(shared):
    from millpond.job import Failure, Raised

    node = Node(shared)
    (parent,) = put(shared, new_job())
    put(shared, *(new_job(queue="behind", depends_on=(parent,)) for _ in range(6000)))
    node.run(Raised(Failure("E", "no"), final=True))
    left = tally(shared, "behind")["blocked"]
    assert left > 0
    assert shared.replay(Filter(ids=(parent,))) == 1
    node.reach_all()
    assert tally(shared, "behind")["blocked"] == left
    node.run()
    node.reach_all()
    assert tally(shared, "behind")["queued"] == left


def test_slots_that_no_job_uses_are_forgotten_and_come_back(store, node):
    put(store, *(new_job(slots=(Slot(f"order-{number}", 1),)) for number in range(50)))
    held, *others = node.claim()
    node.settle(*others)
    (waiting,) = put(store, new_job(slots=held.slots))
    assert node.claim() == []
    travel(store, 2 * 3600)
    node.renew()
    store.prune(Retention())
    assert slots_known(store) == 1
    (again,) = put(store, new_job(slots=others[0].slots))
    assert ids(node.claim()) == [again]
    node.settle(held)
    assert ids(node.claim()) == [waiting]


def slots_known(store):
    if hasattr(store, "schema"):
        with store._connection() as connection:
            return connection.execute(f"SELECT count(*) FROM {store.schema}.slots".encode()).fetchone()[0]
    if hasattr(store, "in_memory"):
        with store._lock:
            return next(iter(store._open().execute("SELECT count(*) FROM millpond_slots")))[0]
    return 1
