"""Tells what was decided about the size of pools: events, lines in a log, and facts for other nodes.

Only what changes something is told, and once a minute how things stand. Nothing here decides.
"""

from __future__ import annotations

import logging
from collections import deque
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec
from msgspec.structs import asdict, replace

from millpond.errors import StoreError
from millpond.node.observability.events import NodeEvents, PoolFlaps, ScaledDown, ScaledUp
from millpond.node.scaling.fleet import PoolShare
from millpond.rules.scaling import flapping
from millpond.rules.scaling.policies import sentence
from millpond.rules.scaling.records import Decision, action_of

if TYPE_CHECKING:
    from millpond.node.state import NodeState
    from millpond.pool_settings import PoolSettings
    from millpond.store.protocol import Entry, Store

logger = logging.getLogger("millpond")
LOG = "decisions"
KEEP = 1000  # decisions that the store remembers
MOST_UNTOLD = 100  # that wait while the store is away; older ones are forgotten
REMIND = 60.0  # seconds between two lines of a pool whose size does not change
# The terms that send nobody away: where one of these decided, who is gone had been idle. Others are caps.
WITHOUT_HASTE = ("", "base", "running", "backlog", "depth", "demand", "budget", "warm", "min", "hold")


class Told(NamedTuple):
    """What was last said about a pool."""

    size: int  # that it has; in shadow the one that was recommended
    at: float


class Telling:
    """Remembers what it has told. Used by one thread."""

    def __init__(self, state: NodeState, events: NodeEvents) -> None:
        self._state = state
        self._events = events
        self._told: dict[str, Told] = {}
        self._sent: dict[str, Decision] = {}  # by pool: the last one, if it told workers to leave
        self._sizes: dict[str, flapping.Sizes | None] = {}
        self._untold: deque[bytes] = deque(maxlen=MOST_UNTOLD)

    def tell(self, settings: PoolSettings, decision: Decision, now: float) -> None:
        """Say what is new about a pool."""
        name, last = settings.name, self._told.get(settings.name)
        sent = self._was_sent(name, decision)
        known = decision.alive if last is None else last.size
        after = decision.wanted if settings.shadow else _size(decision, known)
        self._tell_of_flapping(name, after, now)
        is_due = last is None or now - last.at >= REMIND
        if after == known and not (is_due and settings.least < settings.most):
            self._told.setdefault(name, Told(after, now))
            return
        self._told[name] = Told(after, now)
        before = decision.alive if settings.shadow else known
        cause = sent if sent is not None and after < before else decision
        said = recommended(name, decision) if settings.shadow else words_of(name, cause, before, after)
        if after != before and not settings.shadow:
            self._publish(name, (before, after), said, now)
        self._untold.append(self._line(settings, decision, (before, after), said))

    def _publish(self, name: str, step: tuple[int, int], said: str, now: float) -> None:
        kind = ScaledUp if step[1] > step[0] else ScaledDown
        self._sizes[name], is_new = flapping.changed(self._sizes.get(name), *step, now)
        self._events.publish(kind(name, *step, said, repeated=not is_new))

    def _tell_of_flapping(self, name: str, size: int, now: float) -> None:
        before = self._sizes.get(name)
        self._sizes[name], changes = flapping.passed(before, now)
        if before is not None and changes:
            self._events.publish(PoolFlaps(name, before.low, before.high, changes, size))

    def _was_sent(self, name: str, decision: Decision) -> Decision | None:
        """The decision before, if it told workers to leave: they are gone at this one, which may know no
        reason for it any more."""
        sent = self._sent.pop(name, None)
        if decision.leave:
            self._sent[name] = decision
        return None if decision.leave or _is_cap(decision) else sent

    def _line(self, settings: PoolSettings, decision: Decision, step: tuple[int, int], said: str) -> bytes:
        document = {
            "node": self._state.identity.id,
            "pool": settings.name,
            "shadow": settings.shadow,
            "sentence": said,
            **asdict(decision),
            **fields(*step),
            "before": step[0],  # for readers of an older version
            "after": step[1],
            "base": round(decision.base, 3),
            "backlog": round(decision.backlog, 3),
        }
        return msgspec.json.encode(document)

    def flush(self) -> None:
        """Write to the store what was said since the last time."""
        lines = list(self._untold)
        if not lines:
            return
        try:
            self._state.store.log(LOG, lines, limit=0, keep=KEEP)
        except StoreError as error:
            logger.debug("Decisions could not be written down: %s", error)
        else:
            self._untold.clear()


def _size(decision: Decision, before: int) -> int:
    """The size to speak of: what is being grown to, or what is left."""
    if decision.wanted > decision.alive:
        return max(decision.wanted, before)
    return decision.alive


def _is_cap(decision: Decision) -> bool:
    return decision.binding not in WITHOUT_HASTE


def words_of(name: str, decision: Decision, before: int, after: int) -> str:
    """The decision in a sentence. The change is what was seen: workers may have come before this was decided,
    by a new minimum, and who was told to leave goes when its job ends."""
    if after == before:
        return sentence(name, decision)
    if after > before or _is_cap(decision):
        return sentence(name, replace(decision, alive=before, wanted=after))
    why = "more than there may be" if decision.leave else f"idle for {decision.idle_timeout:g} s"
    return f"{name} {before} -> {after}: {why}"


def recommended(name: str, decision: Decision) -> str:
    """What a policy in shadow would do with the pool as it is, and why."""
    return sentence(f"{name} {decision.alive}, recommended", replace(decision, alive=decision.wanted))


def said_of(settings: PoolSettings, decision: Decision) -> str:
    """How things stand with a pool, in a sentence."""
    return (recommended if settings.shadow else sentence)(settings.name, decision)


def share_of(settings: PoolSettings, decision: Decision | None, workers: int, desired: int) -> PoolShare:
    """What other nodes are told about a pool."""
    return PoolShare(
        name=settings.name,
        queues=settings.queues,
        workers=workers,
        least=settings.least,
        most=settings.most,
        concurrency=settings.concurrency,
        wanted=settings.least if decision is None else decision.wanted,
        desired=desired,
        shadow=settings.shadow,
        sentence="" if decision is None else said_of(settings, decision),
    )


def fields(current: int, target: int) -> dict[str, Any]:
    """What every stored decision says of its change, for programs."""
    return {"current": current, "target": target, "action": action_of(current, target)}


def with_fields(line: Mapping[str, Any]) -> dict[str, Any]:
    """A stored decision with the fields that every one has; of an older version's, what can be known."""
    found = {"queue_depth": None, "busy_workers": None, **line}
    if "action" not in found:
        current, target = line.get("before"), line.get("after")
        if isinstance(current, int) and isinstance(target, int):
            found.update(fields(current, target))
        else:
            found.update(dict.fromkeys(("current", "target", "action")))
    return found


def read_decisions(store: Store, limit: int) -> list[Mapping[str, Any]]:
    """The last decisions of all nodes, the oldest first; lines that cannot be read are left out."""
    found = [_decoded(entry) for entry in store.log(LOG, limit=KEEP)]
    return [line for line in found if line is not None][-limit:]


def _decoded(entry: Entry) -> Mapping[str, Any] | None:
    try:
        facts = msgspec.json.decode(entry.data)
    except (msgspec.DecodeError, RecursionError):
        return None
    return {"number": entry.number, "at": entry.at, **with_fields(facts)} if isinstance(facts, dict) else None
