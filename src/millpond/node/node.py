"""`Node`: one machine's supervisor, with a pool for each queue; starts and stops everything.

    with Node(app): ...                      # inside a program
    Node(app, queues=["mail"]).run()         # as a process of its own, with signals

Handlers never run in this process. How it stops is decided in `rules/node/shutdown.py`.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from typing import TYPE_CHECKING, Any, Self

from millpond.errors import OptionError
from millpond.node.commands import Commands, grace_of
from millpond.node.jobs.claim_loop import POLL, ClaimLoop
from millpond.node.jobs.queue_pool import QueuePool
from millpond.node.jobs.unknown_tasks import UNKNOWN_AFTER, UnknownTasks
from millpond.node.lease.heartbeat import Heartbeat, patience
from millpond.node.lease.publish_info import Bulletin
from millpond.node.maintenance import Upkeep
from millpond.node.observability.counters import Occurrences
from millpond.node.observability.event_log import Journal
from millpond.node.observability.monitor import Monitoring
from millpond.node.observability.observers import connect, pool_news
from millpond.node.observability.report_builder import Watched, report_on
from millpond.node.observability.worker_output import Output
from millpond.node.recurring import Planning
from millpond.node.resources.budget import NodeBudget, check_budget
from millpond.node.resources.usage_monitor import Watch
from millpond.node.scaling.loop import Scaling
from millpond.node.shutdown import broken_off, give_up_lease, let_finish, stop_all, tell_all, within
from millpond.node.state import NodeState
from millpond.node.worker.app_loading import source_of
from millpond.node.worker.library_threads import for_all, threads_by_queue
from millpond.node.worker.store_proxy import Doorway
from millpond.options import Duration, Resources, check_queue, check_whole, nearest
from millpond.pool.process.starters import Hub
from millpond.pool_settings import MOST_WORKERS, PoolSettings, default_settings
from millpond.rules.node import shutdown
from millpond.store.open import open_store
from millpond.store.protocol import LEASE, Retention
from millpond.units import seconds

if TYPE_CHECKING:
    from millpond.app import App
    from millpond.node.observability.alerts import Hook
    from millpond.node.observability.report import NodeReport

logger = logging.getLogger("millpond")
GRACE = 25.0
LAST_STEPS = 5.0  # how long workers, threads and the lease may take to end, once all is settled
BRIEFLY = 0.05  # how long events are waited for when no time is left at all
SHORTEST_LEASE = 1.0


class Node:
    """Runs the jobs of an app on this machine."""

    def __init__(
        self,
        app: App,
        *,
        queues: Iterable[str] | None = None,
        grace: Duration = GRACE,
        lease: Duration = LEASE,
        retention: Retention | None = None,
        alerts: Iterable[Hook] = (),
        max_workers: int | None = None,
        budget: Resources | None = None,
        unknown_after: Duration = UNKNOWN_AFTER,
    ) -> None:
        self.app = app
        self.grace = seconds(grace, name="grace")
        self.settings = pools_for(app, queues)
        length = seconds(lease, name="lease")
        if length < SHORTEST_LEASE:
            raise OptionError(f"lease must be at least {SHORTEST_LEASE:g} s, not {length:g}")
        self._state = NodeState(app.store, length, NodeBudget(check_budget(budget)))
        if app._address is not None and not app._address.startswith("memory:"):
            # Nothing that the loop does can hold it up, nor can a dead connection for long
            self._state.heart = open_store(app._address, patience=patience(length))
        self.monitoring = Monitoring(lambda: self._looked_at(with_workers=False), alerts)
        self.subscribe = self.monitoring.events.subscribe
        connect(self._state, self.monitoring)
        self._loop = ClaimLoop(self._state)
        self._heart = Heartbeat(self._state, self._loop)
        events = self.monitoring.events
        self._scaling = Scaling(self._state, events, self._loop.hint, _whole(max_workers))
        self._state.pressed = self._press
        self._state.unknown = UnknownTasks(self._state, app, seconds(unknown_after, name="unknown_after"))
        self._upkeep = Upkeep(self._state, retention or Retention(), events, self._scaling.counting)
        self._watch = Watch(self._state, self._loop, lambda: self._scaling.counting.counts)
        self._state.budget.expect(app.tasks.values(), app.tokens)
        self._planning = Planning(app, self._state, events)
        self._journal = Journal(events, app.store, lambda: self._state.identity.id)
        self._occurrences = Occurrences(events)
        self._upkeep.chores, self._upkeep.hint = self._chores(), self._loop.hint
        self.told_to_drain: float | None = None  # by a command, with so much grace
        self._threads: list[threading.Thread] = []
        self._doorway: Doorway | None = None
        self._hub: Hub | None = None
        self._output = Output()
        self._ladder = [shutdown.Ladder()]
        self._stopped, self._changing = threading.Event(), threading.Lock()
        self._reason, self._released_before = "", 0  # of the drain, and jobs given back before it
        self._started_at = time.monotonic()

    # --- starting ---------------------------------------------------------------------------------------
    def start(self) -> None:
        """Take a lease, start the pools, begin to claim."""
        with self._changing:
            if self._threads or self._stopped.is_set():
                raise OptionError("a node can be started once: make another")
            self._planning.check()
            try:
                self._make_pools()
                self._begin()
            except BaseException:  # the store is away, say: leave no process, thread or folder behind
                self._undo_start()
                raise

    def _make_pools(self) -> None:
        state = self._state
        source = source_of(self.app)
        threads = threads_by_queue(self.app.tasks.values())
        queues = [queue for settings in self.settings for queue in settings.queues]
        self._hub = Hub(source.preload, for_all(threads, queues))
        source = source._replace(hub=self._hub, threads=threads, known_at=lambda: self._loop.round_at)
        source = source._replace(printed=self._output.take)
        if state.store.url == "memory://":
            self._doorway = Doorway(state.store)
            source = source._replace(doorway=self._doorway.path)
        for settings in self.settings:
            news = pool_news(self.monitoring, settings.name, self._loop.hint)
            pool = QueuePool(settings, source, state.line.add, news)
            state.pools[settings.name] = pool
            state.by_queue.update(dict.fromkeys(settings.queues, pool))

    def _begin(self) -> None:
        state = self._state
        state.durability = state.store.durability()
        state.identity.facts["queues"] = sorted(state.by_queue)
        state.unknown.tell()
        state.renew()
        self._scaling.recall_needs()
        for pool in state.pools.values():
            pool.start()
        state.phase = "running"
        for name, target in (
            ("claim", self._loop.run),
            ("heartbeat", self._heart.run),
            ("fence", self._heart.guard),
            ("upkeep", self._upkeep.run),
            ("scaling", self._scaling.run),
            ("resources", self._watch.run),
            ("listen", self._listen),
            ("recurring", self._planning.run),
        ):
            thread = threading.Thread(target=target, name=f"millpond-{name}", daemon=True)
            thread.start()
            self._threads.append(thread)
        self.monitoring.start()

    def _undo_start(self) -> None:
        state, until = self._state, time.monotonic() + LAST_STEPS
        state.phase = "stopped"
        self._loop.stopping = True
        for pool in state.pools.values():
            pool.close(0.0)
        self._end_all(until)
        self._stopped.set()

    def run(self) -> int:
        """Be this process's main business until a signal ends it; returns the exit code."""
        from millpond.node.process.foreground import serve

        return serve(self, grace=self.grace)

    def keep(self, retention: Retention) -> None:
        """Other times after which ended jobs are deleted."""
        self._upkeep.retention = retention

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, *_: object) -> None:
        self.stop(0.0 if kind is not None and not issubclass(kind, Exception) else None)

    def _listen(self) -> None:
        """Wait for the store's hints."""
        state, loop = self._state, self._loop
        queues = list(state.by_queue)
        while not loop.stopping:
            try:
                if state.store.wait(queues, POLL):
                    loop.hear()
                    self._press()
            except Exception as error:  # only a hint; looking without one goes on
                logger.debug("Listening failed: %s", error)
                self._stopped.wait(POLL)

    def _press(self) -> None:
        """There is work: those who rest while there is none begin to look again."""
        self._scaling.press()
        self._watch.wake()

    # --- stopping -----------------------------------------------------------------------------------
    def stop(self, grace: Duration | None = None) -> None:
        """Drain and stop: give back what has not begun, finish what runs within `grace`."""
        self.drain(self.grace if grace is None else seconds(grace, name="grace"))
        self.wait()

    def drain(self, grace: float, reason: str = "asked to") -> None:
        """Begin to stop, without waiting for it. One that drains already may get less time, never more."""
        with self._changing:
            was = self._state.phase
            if was == "stopped":
                return
            self._ladder[0] = shutdown.drain(self._ladder[0], grace, time.monotonic())
            if was == "draining":
                return
            self._state.phase = "draining"
            self._reason, self._released_before = reason, self._released()
            if was == "starting":
                self._state.phase = "stopped"
                self._let_go(time.monotonic() + LAST_STEPS)
                self._stopped.set()
                return
        for pool in self._state.pools.values():
            pool.drain()
        self._planning.stop()
        self._loop.bell.set()
        try:
            threading.Thread(target=self._wind_down, name="millpond-stop").start()
        except RuntimeError:  # the machine has no more threads: then it is waited for here
            self._wind_down()

    def _released(self) -> int:
        return sum(pool.tally.told()["released"] for pool in self._state.pools.values())

    def hurry(self) -> None:
        """Give running jobs only a moment more."""
        self.drain(self.grace)
        self._ladder[0] = shutdown.hurry(self._ladder[0], time.monotonic())

    def kill(self) -> None:
        """Stop now, whatever runs."""
        self.drain(0.0)
        self._ladder[0] = shutdown.kill(self._ladder[0], time.monotonic())

    def hold(self) -> None:
        """Claim nothing more for the time being; what was claimed goes on."""
        with self._changing:
            if self._state.phase == "running":
                self._state.phase = "held"

    def go_on(self) -> None:
        """Claim again."""
        with self._changing:
            if self._state.phase == "held":
                self._state.phase = "running"
                self._loop.hint()

    def wait(self, timeout: float | None = None) -> bool:
        """True once the node has stopped."""
        return self._stopped.wait(timeout)

    def _wind_down(self) -> None:
        try:
            self._finish()
        except Exception:  # a bug; whoever waits for the end must not wait for ever
            logger.exception("The node could not stop in good order")
        finally:
            self._loop.stopping = True
            self._state.phase = "stopped"
            self._stopped.set()

    def _finish(self) -> None:
        state = self._state
        let_finish(state, self._ladder)
        stop_all(state)
        tell_all(state, self._loop, self._ladder)
        until = min(self._ladder[0].over_at, time.monotonic() + LAST_STEPS)  # the same for all that follows
        self._end_all(until)
        state.phase = "stopped"
        self.monitoring.stop(
            self._reason,
            released=self._released() - self._released_before,
            killed=broken_off(state),
            timeout=min(1.0, max(BRIEFLY, until - time.monotonic())),
        )
        within(max(until, time.monotonic() + BRIEFLY), self._journal.close)

    def _end_all(self, until: float) -> None:
        """End the workers, then the threads, and at last the lease: from then on the jobs may be others'."""
        for pool in self._state.pools.values():
            pool.join(until)
        self._loop.stopping = True
        self._loop.bell.set()
        self._heart.stop()
        self._upkeep.stop()
        self._watch.stop()
        self._planning.stop()
        self._scaling.stop(max(0.0, until - time.monotonic()))
        self._planning.join(max(0.0, until - time.monotonic()))
        self._let_go(until)

    def _let_go(self, until: float) -> None:
        """Give up the lease, and close what was opened beside the app's own store."""
        give_up_lease(self._state, until)
        if self._doorway is not None:
            self._doorway.close()
        if self._hub is not None:
            self._hub.close()
        self._output.close()

    # --- beside the jobs --------------------------------------------------------------------------------
    def _chores(self) -> tuple[Callable[[], None], ...]:
        """What the upkeep does for those who look at the node from elsewhere."""
        verbs = {"drain": self._drain_as_told, "recycle": self._recycle_as_told}
        commands = Commands(self.app.store, lambda: self._state.identity.id, verbs)
        bulletin = Bulletin(self._state, self.report)
        return (self._state.unknown.look, bulletin.look, self._journal.flush, commands.look_now_and_then)

    def _drain_as_told(self, said: Mapping[str, Any]) -> None:
        self.told_to_drain = grace_of(said, self.grace)
        self.drain(self.told_to_drain, "a command")

    def _recycle_as_told(self, said: Mapping[str, Any]) -> None:
        for pool in self._state.pools.values():
            pool.recycle(said.get("worker"))

    # --- looking --------------------------------------------------------------------------------------
    def report(self) -> NodeReport:
        """The node and its workers, as of now."""
        return self._looked_at(with_workers=True)

    def _looked_at(self, *, with_workers: bool) -> NodeReport:
        age = time.monotonic() - self._started_at
        watched = Watched(self._loop, self._upkeep, self._scaling, self._planning, self._occurrences)
        return report_on(self._state, watched, age, with_workers=with_workers)

    def __repr__(self) -> str:
        return f"<Node {self._state.identity.id} {self._state.phase}>"


def _whole(max_workers: int | None) -> int | None:
    return None if max_workers is None else check_whole(max_workers, "max_workers", 1, MOST_WORKERS)


def pools_for(app: App, queues: Iterable[str] | None) -> list[PoolSettings]:
    """The pools of a node: those of the app and one for every further queue, or only what serves these."""
    known = {queue: settings for settings in app.pools.values() for queue in settings.queues}
    for task in app.tasks.values():
        if task.queue not in known:
            same = [other for other in app.tasks.values() if other.queue == task.queue]
            found = default_settings(task.queue, all_async=all(other.is_async for other in same))
            while found.name in app.pools:  # that one serves other queues than the one of its name
                found = found._replace(name=f"{found.name}-default")
            known[task.queue] = found
    if not known:
        raise OptionError(f"{app!r} has neither tasks nor pools: there is nothing to run")
    if queues is None:
        return list({settings.name: settings for settings in known.values()}.values())
    wanted = [check_queue(queue) for queue in queues]
    for queue in wanted:
        if queue not in known:
            raise OptionError(
                f"no task and no pool has the queue {queue!r}{nearest(queue, known)}. Jobs that wait there "
                f"from before are run by a pool that serves it too: app.pool(name, queues=[..., {queue!r}])"
            )
    chosen: dict[str, PoolSettings] = {}
    for queue in dict.fromkeys(wanted):
        settings = known[queue]
        kept = (*chosen[settings.name].queues, queue) if settings.name in chosen else (queue,)
        chosen[settings.name] = settings._replace(queues=kept)
    return list(chosen.values())
