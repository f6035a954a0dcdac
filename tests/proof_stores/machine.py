"""One machine for every store: each step is done to the store and to the model, and both must agree.

Time stands still unless the machine moves it. After every step the answers are compared, every few steps
everything that can be read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ClassVar

import msgspec
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from millpond.errors import MillpondError
from millpond.job import MICROSECONDS, Job, JobState, NewJob, Outcome, Slot
from millpond.store.postgres import days
from millpond.store.postgres.store import PostgresStore
from millpond.store.protocol import Claim, Exchanged, Filter, Progress, Retention, Started, Tick
from tests.proof_stores import choices
from tests.proof_stores.model_nodes import Model

BEGINNING = 1_750_000_000 * MICROSECONDS
EVERY = 5  # steps between two looks at everything


class StoreMachine(RuleBasedStateMachine):
    """Drives a store beside the model. A subclass says which store."""

    make: ClassVar[Callable[[], Any]]
    steps: ClassVar[list[int]] = [0]

    def __init__(self) -> None:
        super().__init__()
        self.store = type(self).make()
        self.store.clock.freeze()
        self.store.clock.shift = 0
        self.store.clock.frozen = BEGINNING
        self.model = Model(BEGINNING)
        self.used: set[str] = set()
        self.since_look = 0
        self.new_nodes = 1
        self.crowded = False
        self.agreed = True

    # --- the comparison -------------------------------------------------------------------------------
    def both(self, verb: str, expected: Callable[[], Any], answer: Callable[[], Any]) -> Any:
        """The same call to both; the same answer, or the same kind of error, from both."""
        wanted, got = _result(expected), _result(answer)
        self.agreed = got == wanted
        assert got == wanted, f"{verb}: the store said\n  {got}\nbut the model\n  {wanted}"
        return wanted

    @invariant()
    def the_whole_state_agrees(self) -> None:
        self.steps[0] += 1
        self.since_look += 1
        if self.since_look >= EVERY:
            self.look()

    def look(self) -> None:
        """Everything that can be read, compared."""
        self.since_look = 0
        jobs = [kept.job for kept in self.model.chosen(Filter())]
        found = self.store.get([*choices.IDS])
        _same_jobs({job.id: job for job in jobs}, {job.id: _plain(job) for job in found if job is not None})
        page = self.store.search(Filter(), 1000)
        assert [job.id for job in page.jobs] == [job.id for job in reversed(jobs)]
        counts = self.store.counts()
        assert list(counts.queues) == self.model.queue_counts()
        assert list(counts.nodes) == self.model.node_records()
        assert self.store.statistics(0, 10**9) == self.model.statistics()

    def _kept(self, retention: Retention) -> Retention:
        """PostgreSQL keeps what ended to the end of its day."""
        if isinstance(self.store, PostgresStore):
            return days.whole_days(retention, self.store.clock.now())
        return retention

    def teardown(self) -> None:
        if self.agreed:  # or else it would hide what the first disagreement was
            self.look()

    # --- jobs -----------------------------------------------------------------------------------------
    def new_job(self, data: st.DataObject, *, plain: bool = False) -> NewJob:
        job_id = data.draw(choices.ids)
        fresh = job_id not in self.used and (plain or data.draw(st.booleans()))
        self.used.add(job_id)
        known = sorted(self.model.jobs)
        parents = 0 if plain or not known else data.draw(choices.how_many_parents)
        return NewJob(
            id=job_id,
            task=data.draw(choices.tasks),
            payload=b'{"n": 1}',
            queue="default" if self.crowded else data.draw(choices.queues),
            priority=data.draw(st.sampled_from([1, 1, 0, 3, 9])),
            run_at=None if plain else data.draw(st.sampled_from([None, None, None, self.model.now - 7])),
            delay=data.draw(choices.durations),
            expires=data.draw(choices.expiries),
            unique=None if plain else data.draw(choices.uniques),
            unique_for="done" if plain else data.draw(choices.unique_fors),
            slots=() if plain else data.draw(choices.some_slots if self.crowded else choices.slots),
            depends_on=tuple(data.draw(st.sampled_from(known)) for _ in range(parents)),
            options=data.draw(choices.options),
            fresh=fresh,
        )

    @rule(data=st.data(), plain=st.booleans())
    def enqueue(self, data: st.DataObject, plain: bool) -> None:
        self._enqueue([self.new_job(data, plain=plain)])

    @rule(data=st.data(), place=choices.nodes)
    def enqueue_and_claim(self, data: st.DataObject, place: int) -> None:
        job = self.new_job(data)
        self._enqueue([job])
        self.exchange(self.node(place), claims=[Claim(job.queue, 2)])

    @rule(data=st.data(), number=st.integers(2, 4), chained=st.booleans())
    def enqueue_many(self, data: st.DataObject, number: int, chained: bool) -> None:
        jobs: list[NewJob] = []
        for _ in range(number):
            job = self.new_job(data)
            if chained and job.id in {other.id for other in jobs}:
                continue
            if chained and jobs:
                job = msgspec.structs.replace(job, depends_on=(*job.depends_on, jobs[-1].id))
            jobs.append(job)
        self._enqueue(jobs)

    def _enqueue(self, jobs: list[NewJob]) -> None:
        self.both("enqueue", lambda: self.model.enqueue(jobs), lambda: self.store.enqueue(jobs))

    # --- nodes ----------------------------------------------------------------------------------------
    @initialize(crowded=st.booleans())
    def two_nodes(self, crowded: bool) -> None:
        """In half of the worlds there is one queue, and everybody wants a slot."""
        self.crowded = crowded
        for node in choices.NODES[:2]:
            self._renew(node, 15.0)

    def node(self, place: int, *, busy: bool = False) -> str:
        """A node that may speak (one that runs something, if there is one), or now and then any."""
        live = sorted(name for name, node in self.model.nodes.items() if not node.sealed)
        at_work = [name for name in live if self.model.running(name)]
        if place == 15 or not live:
            return choices.NODES[self.new_nodes % len(choices.NODES)]
        return at_work[place % len(at_work)] if busy and at_work else live[place % len(live)]

    @rule(place=choices.nodes, lease=choices.leases, new=st.booleans())
    def renew(self, place: int, lease: float, new: bool) -> None:
        if new:
            self.new_nodes += 1
        self._renew(self.node(15 if new else place), lease)

    def _renew(self, node: str, lease: float) -> None:
        host = choices.HOSTS[node]
        self.both(
            "renew",
            lambda: self.model.renew(node, host, b"{}", lease),
            lambda: self.store.renew(node, host, b"{}", lease),
        )

    @rule(place=choices.nodes, rounds=st.integers(1, 4))
    def outlive_the_others(self, place: int, rounds: int) -> None:
        node = self.node(place)
        for _ in range(rounds):
            self._renew(node, 15.0)
            self.advance(7.0)
        self._rescue(node, [])

    @rule(place=choices.nodes, others=st.lists(choices.nodes, max_size=1), give_up=st.booleans())
    def rescue(self, place: int, others: list[int], give_up: bool) -> None:
        gone = [self.node(other, busy=True) for other in others]
        if give_up and gone:
            self._renew(gone[0], 0.0)
        self._rescue(self.node(place), gone)

    def _rescue(self, node: str, gone: list[str]) -> None:
        self.both("rescue", lambda: self.model.rescue(node, gone), lambda: self.store.rescue(node, gone))

    # --- exchange -------------------------------------------------------------------------------------
    def exchange(self, node: str, ahead: int = 1, **parts: Any) -> None:
        known = self.model.nodes.get(node)
        before = known.sequence if known else 0
        sequence = max(0, before + ahead)  # a node counts from 1
        parts = {"settlements": [], "started": [], "progress": [], "claims": [], **parts}
        is_claim = [name for name, part in parts.items() if part] == ["claims"]
        answers: list[Exchanged] = []

        def expected() -> Exchanged:
            answers.append(self.model.exchange(node, sequence, **parts))
            return answers[-1]

        self.both("exchange", expected, lambda: self.store.exchange(node, sequence, **parts))
        if is_claim and answers == [Exchanged()]:  # a store need not count what came to nothing
            (told,) = (one.sequence for one in self.store.counts().nodes if one.id == node)
            assert told in {before, sequence}
            self.model.nodes[node].sequence = told

    def jobs_near(self, node: str) -> list[Job]:
        """What a node may talk about: what it runs, and a little that it does not."""
        mine = [kept.job for kept in self.model.running(node)]
        others = [kept.job for kept in self.model.jobs.values() if kept.job.node != node]
        return (mine + others)[: max(len(mine), 1) + 2]

    @rule(place=choices.nodes, claims=choices.claims)
    def claim(self, place: int, claims: list[Claim]) -> None:
        if self.crowded:
            claims = [msgspec.structs.replace(entry, queue="default") for entry in claims]
        self.exchange(self.node(place), claims=claims)

    @rule(place=choices.nodes, claims=choices.all_queues)
    def claim_everywhere(self, place: int, claims: list[Claim]) -> None:
        self.exchange(self.node(place), claims=claims)

    def someone_runs(self) -> bool:
        return any(kept.job.state is JobState.RUNNING for kept in self.model.jobs.values())

    @precondition(someone_runs)
    @rule(place=choices.nodes, items=choices.settled, claims=st.just([]) | choices.all_queues)
    def settle(self, place: int, items: list[tuple[int, int, Outcome]], claims: list[Claim]) -> None:
        node = self.node(place, busy=True)
        near = self.jobs_near(node)
        settlements = [
            choices.settlement(near[place % len(near)], drift, outcome, self.model.now)
            for place, drift, outcome in items
        ]
        self.exchange(node, settlements=settlements, claims=claims)

    @precondition(someone_runs)
    @rule(place=choices.nodes, first=choices.outcomes, others=choices.outcomes, claims=choices.all_queues)
    def settle_all_and_go_on(self, place: int, first: Outcome, others: Outcome, claims: list[Claim]) -> None:
        node = self.node(place, busy=True)
        settlements = [
            choices.settlement(kept.job, 0, others if number else first, self.model.now)
            for number, kept in enumerate(self.model.running(node))
        ]
        self.exchange(node, settlements=settlements, claims=claims)

    @rule(place=choices.nodes, claims=choices.all_queues)
    def start_all_and_go_on(self, place: int, claims: list[Claim]) -> None:
        node = self.node(place, busy=True)
        begun = [Started(kept.job.id, kept.job.token) for kept in self.model.running(node)]
        self.exchange(node, started=begun, claims=claims)

    @precondition(someone_runs)
    @rule(place=choices.nodes, begun=choices.picks, reports=choices.picks, ahead=st.sampled_from([1, 7]))
    def start_and_report(
        self, place: int, begun: list[tuple[int, int]], reports: list[tuple[int, int]], ahead: int
    ) -> None:
        node = self.node(place, busy=True)
        near = self.jobs_near(node)
        chosen = [(near[place % len(near)], drift) for place, drift in begun]
        told = [(near[place % len(near)], drift) for place, drift in reports]
        self.exchange(
            node,
            ahead,
            started=[Started(job.id, job.token + drift) for job, drift in chosen],
            progress=[Progress(job.id, job.token + drift, b"%d" % n) for n, (job, drift) in enumerate(told)],
        )

    # --- people and time ------------------------------------------------------------------------------
    @rule(
        what=st.sampled_from(["cancel", "cancel", "replay", "discard"]),
        places=st.lists(st.integers(0, 39), max_size=3),
        chosen=choices.filters,
    )
    def people(self, what: str, places: list[int], chosen: Filter) -> None:
        known = [kept.job.id for kept in self.model.chosen(Filter())]
        if places and known:  # some that there are
            chosen = Filter(ids=tuple(known[place % len(known)] for place in places))
        elif what == "replay":
            chosen = Filter()
        if what == "discard":
            self.both(what, lambda: self.model.discard(chosen), lambda: self.store.prune(Retention(), chosen))
        else:
            self.both(
                what, lambda: getattr(self.model, what)(chosen), lambda: getattr(self.store, what)(chosen)
            )

    @rule(queue=choices.queues, paused=choices.pauses, rate=choices.rates)
    def configure(self, queue: str, paused: bool | None, rate: float | None) -> None:
        self._configure(queue=queue, paused=paused, rate=rate, slot=None)

    @rule(name=st.sampled_from(choices.SLOTS), capacity=st.integers(0, 3))
    def resize_a_slot(self, name: str, capacity: int) -> None:
        self._configure(queue=None, paused=None, rate=None, slot=Slot(name, capacity))

    def _configure(self, **settings: Any) -> None:
        self.both(
            "configure", lambda: self.model.configure(**settings), lambda: self.store.configure(**settings)
        )

    @rule(seconds=choices.moments)
    def advance(self, seconds: float) -> None:
        self.store.clock.shift += round(seconds * MICROSECONDS)
        self.model.now += round(seconds * MICROSECONDS)

    # --- what is rare ---------------------------------------------------------------------------------
    @rule(data=st.data(), what=st.sampled_from(["hold", "again", "plan", "prune", "search", "record", "log"]))
    def rarely(self, data: st.DataObject, what: str) -> None:
        getattr(self, f"do_{what}")(data)

    def do_hold(self, data: st.DataObject) -> None:
        node = self.node(data.draw(choices.nodes), busy=True)
        self.both("held", lambda: self.model.held(node), lambda: self.store.held(node))

    def do_again(self, data: st.DataObject) -> None:
        """An exchange that was sent before, and a job behind one that nobody knows."""
        node = self.node(data.draw(choices.nodes))
        self.exchange(node, data.draw(st.integers(-2, 0)), claims=data.draw(choices.all_queues))
        self._enqueue([NewJob(id=choices.IDS[0], task="send", payload=b"{}", depends_on=("nobody",))])

    def do_plan(self, data: st.DataObject) -> None:
        instants = st.integers(0, 4)
        ticks = [
            Tick("nightly", data.draw(instants) * MICROSECONDS, self.new_job(data)),
            Tick("nightly", data.draw(instants) * MICROSECONDS),
        ]
        self.both("plan", lambda: self.model.plan(ticks), lambda: self.store.plan(ticks))

    def do_prune(self, data: st.DataObject) -> None:
        retention = data.draw(choices.retentions)
        self.both(
            "prune", lambda: self.model.prune(self._kept(retention)), lambda: self.store.prune(retention)
        )

    def do_search(self, data: st.DataObject) -> None:
        chosen, limit = data.draw(choices.filters), data.draw(st.integers(1, 4))
        cursor = data.draw(st.none() | choices.ids)
        found = [kept.job for kept in reversed(self.model.chosen(chosen))]
        if cursor is not None:
            found = [job for job in found if job.id.encode() < cursor.encode()]
        page = self.store.search(chosen, limit, cursor)
        assert [_plain(job) for job in page.jobs] == [_plain(job) for job in found[:limit]]
        assert page.cursor == (found[limit - 1].id if len(found) >= limit else None)

    def do_record(self, data: st.DataObject) -> None:
        value, version = data.draw(st.none() | st.just(b"v")), data.draw(st.integers(0, 2))
        self.both(
            "record",
            lambda: self.model.record("x", value, version),
            lambda: self.store.record("x", value, version),
        )

    def do_log(self, data: st.DataObject) -> None:
        lines = [b"line"] * data.draw(st.integers(0, 3))
        after, keep = data.draw(st.integers(0, 5)), data.draw(st.integers(1, 4))
        self.both(
            "log",
            lambda: self.model.log("l", lines, after, 2, keep),
            lambda: self.store.log("l", lines, after=after, limit=2, keep=keep),
        )


def _result(call: Callable[[], Any]) -> Any:
    try:
        value = call()
    except MillpondError as error:
        return type(error)
    if isinstance(value, Exchanged):
        claimed = tuple(_plain(job) for job in value.claimed)
        return msgspec.structs.replace(value, claimed=claimed, cancelling=tuple(sorted(value.cancelling)))
    return value


def _plain(job: Job) -> Job:
    """The job without where it is parked and without the prose of its attempts."""
    attempts = tuple(msgspec.structs.replace(attempt, message=None) for attempt in job.attempts)
    return msgspec.structs.replace(job, parked=None, attempts=attempts)


def _same_jobs(wanted: dict[str, Job], found: dict[str, Job]) -> None:
    assert sorted(found) == sorted(wanted)
    for name in sorted(wanted):
        got, expected = msgspec.structs.asdict(found[name]), msgspec.structs.asdict(_plain(wanted[name]))
        wrong = {key: (got[key], expected[key]) for key in expected if got[key] != expected[key]}
        assert not wrong, f"job {name}, field: (store, model): {wrong}"
