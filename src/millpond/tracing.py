"""OpenTelemetry spans of a job: enqueue, run, settle.

Nothing is done, or imported, unless the program has told OpenTelemetry where its spans go: else there is no
one to trace for. The context travels beside the payload, in the job's options, and is bounded. A retry, a
scheduled job and one of a batch begin a trace of their own that links back. Attribute names are here only.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import Thread
from typing import TYPE_CHECKING, Any

from millpond.job import Cancelled, Crashed, Lost, Outcome, OutOfMemory, Raised, Returned, TimedOut, Unread
from millpond.shown_text import shown

if TYPE_CHECKING:
    from opentelemetry.context import Context
    from opentelemetry.trace import Link, Span, Tracer

SYSTEM = "messaging.system"
OPERATION = "messaging.operation.name"
QUEUE = "messaging.destination.name"
JOB = "messaging.message.id"
BATCH = "messaging.batch.message_count"
TASK = "millpond.task"
ATTEMPT = "millpond.attempt"
ENDED = "millpond.ended"
ERROR = "error.type"

LINK = "millpond-link"  # in the carrier: the job was one of a batch, or is for later
MOST_ENTRIES = 8
MOST_CHARACTERS = 2_048  # of all entries together
_NANOSECONDS = 1_000  # in a microsecond
NOBODY = frozenset({"ProxyTracerProvider", "NoOpTracerProvider"})  # providers that take no spans

Carrier = Mapping[str, str]


def is_on() -> bool:
    """Does anybody want spans? A driver may have imported OpenTelemetry, as redis-py does where it is
    installed: only a provider that somebody has set is a wish. Cheap enough for every job."""
    trace = sys.modules.get("opentelemetry.trace")
    provider = getattr(trace, "get_tracer_provider", None)  # may be half imported
    return provider is not None and type(provider()).__name__ not in NOBODY


# --- where a job is enqueued ------------------------------------------------------------------------------
@contextmanager
def enqueueing(
    task: str, queue: str, jobs: int = 1, *, is_scheduled: bool = False
) -> Iterator[dict[str, str]]:
    """A span around the storing of jobs; gives what each has to carry, nothing when tracing is off."""
    if not is_on():
        yield {}
        return
    from opentelemetry import propagate
    from opentelemetry.trace import SpanKind

    attributes: dict[str, Any] = {SYSTEM: "millpond", OPERATION: "enqueue", QUEUE: queue, TASK: task}
    if jobs > 1:
        attributes[BATCH] = jobs
    with _tracer().start_as_current_span(f"enqueue {task}", kind=SpanKind.PRODUCER, attributes=attributes):
        carrier: dict[str, str] = {}
        propagate.inject(carrier)
        if carrier and (jobs > 1 or is_scheduled):
            carrier[LINK] = "1"
        yield bounded(carrier)


def bounded(carrier: Carrier) -> dict[str, str]:
    """At most so much of it that a job stays small: the context itself first, baggage as far as it fits."""
    kept: dict[str, str] = {}
    room = MOST_CHARACTERS
    for name in sorted(carrier, key=lambda name: (name not in {"traceparent", LINK}, name)):
        cost = len(name) + len(carrier[name])
        if cost <= room and len(kept) < MOST_ENTRIES:
            kept[name] = carrier[name]
            room -= cost
    return kept


# --- where it runs ------------------------------------------------------------------------------------------
@contextmanager
def running(
    carrier: Carrier, *, job: str, task: str, queue: str, attempt: int
) -> Iterator[Callable[[Outcome], None]]:
    """A span around one attempt, inside the worker, so that the task's own spans are under it.

    Gives the function to call with the outcome.
    """
    if not is_on():
        yield lambda _: None
        return
    from opentelemetry.trace import SpanKind

    context, links = _origin(carrier, is_linked=attempt > 1)
    attributes = _attributes("process", job, task, queue, attempt)
    with _tracer().start_as_current_span(
        f"run {task}", context=context, kind=SpanKind.CONSUMER, attributes=attributes, links=links
    ) as span:
        yield lambda outcome: _mark(span, outcome)


def flush(timeout: float = 1.0) -> None:
    """Send what waits to be exported: a worker that ends without it takes its last spans along. For no longer
    than `timeout`, of which the SDK's own exporters take no notice."""
    if is_on():
        from opentelemetry import trace

        force = getattr(trace.get_tracer_provider(), "force_flush", None)
        if callable(force):
            sending = Thread(target=force, args=(int(timeout * 1_000),), daemon=True)
            sending.start()
            sending.join(timeout)


# --- where it is settled ------------------------------------------------------------------------------------
def settled(
    carrier: Carrier,
    outcome: Outcome,
    *,
    job: str,
    task: str,
    queue: str,
    attempt: int,
    times: tuple[int | None, int, int],
) -> None:
    """The span of a settle, after the fact; `times` are when the attempt began, ended and was stored.

    An attempt whose worker could not tell of it, since it died, gets its own span here.
    """
    if not is_on() or not carrier:
        return
    from opentelemetry.trace import SpanKind

    started_at, ended_at, stored_at = times
    context, links = _origin(carrier, is_linked=attempt > 1)
    if isinstance(outcome, Crashed | OutOfMemory | TimedOut | Lost):
        span = _tracer().start_span(
            f"run {task}",
            context=context,
            kind=SpanKind.CONSUMER,
            attributes=_attributes("process", job, task, queue, attempt),
            links=links,
            start_time=(started_at if started_at is not None else ended_at) * _NANOSECONDS,
        )
        _mark(span, outcome)
        span.end(ended_at * _NANOSECONDS)
    span = _tracer().start_span(
        f"settle {task}",
        context=context,
        kind=SpanKind.CLIENT,
        attributes=_attributes("settle", job, task, queue, attempt),
        links=links,
        start_time=ended_at * _NANOSECONDS,
    )
    _mark(span, outcome)
    span.end(stored_at * _NANOSECONDS)


# --- parts --------------------------------------------------------------------------------------------------
def _tracer() -> Tracer:
    from opentelemetry import trace

    return trace.get_tracer("millpond")


def _attributes(operation: str, job: str, task: str, queue: str, attempt: int) -> dict[str, str | int]:
    return {
        SYSTEM: "millpond",
        OPERATION: operation,
        QUEUE: queue,
        JOB: job,
        TASK: task,
        ATTEMPT: attempt,
    }


def _origin(carrier: Carrier, *, is_linked: bool) -> tuple[Context, list[Link]]:
    """The context of the enqueue: as a parent, or as a link from a trace of its own."""
    from opentelemetry import propagate, trace
    from opentelemetry.context import Context

    found = propagate.extract(dict(carrier), context=Context())
    if not is_linked and LINK not in carrier:
        return found, []
    origin = trace.get_current_span(found).get_span_context()
    return Context(), [trace.Link(origin)] if origin.is_valid else []


def _mark(span: Span, outcome: Outcome) -> None:
    from opentelemetry.trace import StatusCode

    span.set_attribute(ENDED, type(outcome).__name__.lower())
    if isinstance(outcome, Raised | TimedOut | Crashed | OutOfMemory | Unread):
        span.set_attribute(ERROR, outcome.failure.type)
        span.set_status(StatusCode.ERROR, shown(outcome.failure.message))
    elif isinstance(outcome, Lost):
        span.set_status(StatusCode.ERROR, "it was broken off by its node, and runs again")
    elif isinstance(outcome, Returned) and outcome.refused is not None:
        span.set_status(StatusCode.ERROR, shown(outcome.refused))
    elif isinstance(outcome, Cancelled):
        span.set_attribute(ERROR, outcome.reason)
