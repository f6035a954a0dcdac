"""Spans from enqueue to settle, made by the real SDK; and nothing at all where it is not used."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Sequence
from typing import Any

import pytest
from opentelemetry import baggage, context, trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode

from millpond import App, tracing
from millpond.job import Crashed, Enqueued, Failure, NewJob, Raised, Returned
from millpond.tracing import LINK, MOST_CHARACTERS, bounded, enqueueing, settled

EXPORTER = InMemorySpanExporter()
PROVIDER = TracerProvider()
PROVIDER.add_span_processor(SimpleSpanProcessor(EXPORTER))
FACTS: dict[str, Any] = {"job": "0192-a", "task": "jobs.resize", "queue": "images"}
SECOND = 1_000_000  # microseconds


@pytest.fixture(autouse=True)
def provider(monkeypatch):
    """Set for these tests alone: OpenTelemetry's own setter sets it for good, for every job."""
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", PROVIDER)


@pytest.fixture(autouse=True)
def emptied():
    EXPORTER.clear()


def spans() -> dict[str, ReadableSpan]:
    found: Sequence[ReadableSpan] = EXPORTER.get_finished_spans()
    assert len({span.name for span in found}) == len(found)
    return {span.name: span for span in found}


def enqueued(jobs: int = 1, *, is_scheduled: bool = False) -> dict[str, str]:
    with enqueueing("jobs.resize", "images", jobs, is_scheduled=is_scheduled) as carrier:
        return carrier


def id_of(span: ReadableSpan) -> int:
    assert span.context is not None
    return int(span.context.trace_id)


def test_enqueue_run_and_settle_are_one_trace():
    carrier = enqueued()
    with tracing.running(carrier, **FACTS, attempt=1) as ended:
        with trace.get_tracer("user").start_as_current_span("query"):
            pass
        ended(Returned(b"1"))
    settled(carrier, Returned(b"1"), **FACTS, attempt=1, times=(1 * SECOND, 3 * SECOND, 4 * SECOND))
    found = spans()
    assert set(found) == {"enqueue jobs.resize", "run jobs.resize", "query", "settle jobs.resize"}
    assert len({id_of(span) for span in found.values()}) == 1
    run, settle = found["run jobs.resize"], found["settle jobs.resize"]
    assert found["enqueue jobs.resize"].kind is SpanKind.PRODUCER
    assert run.kind is SpanKind.CONSUMER
    assert run.parent is not None
    assert run.parent.span_id == found["enqueue jobs.resize"].context.span_id
    assert found["query"].parent is not None
    assert found["query"].parent.span_id == run.context.span_id
    assert run.attributes is not None
    assert run.attributes["messaging.message.id"] == "0192-a"
    assert run.attributes["millpond.attempt"] == 1
    assert (settle.start_time, settle.end_time) == (3_000_000_000, 4_000_000_000)


def test_a_job_enqueued_inside_a_trace_belongs_to_it():
    with trace.get_tracer("user").start_as_current_span("request") as request:
        carrier = enqueued()
    assert f"{request.get_span_context().trace_id:032x}" in carrier["traceparent"]


@pytest.mark.parametrize(("jobs", "attempt", "is_scheduled"), [(100, 1, False), (1, 2, False), (1, 1, True)])
def test_a_batch_a_retry_and_a_scheduled_job_link_to_where_they_come_from(jobs, attempt, is_scheduled):
    carrier = enqueued(jobs, is_scheduled=is_scheduled)
    with tracing.running(carrier, **FACTS, attempt=attempt) as ended:
        ended(Returned())
    found = spans()
    run, origin = found["run jobs.resize"], found["enqueue jobs.resize"]
    assert run.parent is None
    assert id_of(run) != id_of(origin)
    assert [link.context.span_id for link in run.links] == [origin.context.span_id]


async def test_a_job_that_is_stored_in_an_async_transaction_has_its_span():
    stored: list[NewJob] = []

    class Joining:
        url = "joining://"

        def exchange(self): ...

        async def aenqueue(self, jobs, transaction):
            stored.extend(jobs)
            return [Enqueued(job.id, True) for job in jobs]

    class Connection:
        async def execute(self): ...

    app = App(Joining())  # type: ignore[arg-type]
    task = app.task(name="jobs.resize", queue="images")(lambda: None)
    await task.using(transaction=Connection(), delay="1h").aenqueue()
    origin = spans()["enqueue jobs.resize"]
    assert origin.context is not None
    assert f"{origin.context.span_id:016x}" in stored[0].options.trace["traceparent"]
    assert LINK in stored[0].options.trace  # it is for later


def test_a_failed_attempt_is_an_error_without_secrets():
    with tracing.running({}, **FACTS, attempt=1) as ended:
        ended(Raised(Failure("ValueError", "password=hunter2")))
    run = spans()["run jobs.resize"]
    assert run.status.status_code is StatusCode.ERROR
    assert run.status.description == "password=***"
    assert run.attributes is not None
    assert run.attributes["error.type"] == "ValueError"


def test_an_attempt_whose_worker_died_gets_its_span_from_the_node():
    carrier = enqueued()
    outcome = Crashed(Failure("WorkerDied", "signal 9"))
    settled(carrier, outcome, **FACTS, attempt=1, times=(1 * SECOND, 2 * SECOND, 3 * SECOND))
    run = spans()["run jobs.resize"]
    assert (run.start_time, run.end_time) == (1_000_000_000, 2_000_000_000)
    assert run.status.status_code is StatusCode.ERROR


def test_a_job_that_carries_nothing_is_not_traced_by_the_node():
    settled({}, Returned(), **FACTS, attempt=1, times=(None, 1, 2))
    assert spans() == {}


def test_what_a_job_carries_is_bounded_and_the_context_comes_first():
    carrier = {"baggage": "x" * 5_000, "traceparent": "00-1-2-01", LINK: "1", "tracestate": "a=b"}
    assert bounded(carrier) == {"traceparent": "00-1-2-01", LINK: "1", "tracestate": "a=b"}
    many = {f"key-{number}": "x" for number in range(100)}
    assert len(bounded(many)) == 8


def test_large_baggage_does_not_make_a_job_large():
    token = context.attach(baggage.set_baggage("user", "x" * 4_000))
    try:
        carrier = enqueued()
    finally:
        context.detach(token)
    assert set(carrier) == {"traceparent"}
    assert sum(map(len, carrier.values())) < MOST_CHARACTERS


@pytest.mark.parametrize("carrier", [{"traceparent": "nonsense"}, {"traceparent": ""}, {"x": "\n"}, {}])
def test_a_carrier_that_makes_no_sense_is_no_trouble(carrier):
    with tracing.running(carrier, **FACTS, attempt=2) as ended:
        ended(Returned())
    assert spans()["run jobs.resize"].links == ()


def test_a_worker_can_send_its_last_spans_before_it_ends():
    tracing.flush(1.0)


def test_nothing_is_imported_or_done_where_the_program_does_not_use_it():
    code = (
        "import sys\n"
        "from millpond.job import Returned\n"
        "from millpond import tracing\n"
        "with tracing.enqueueing('t', 'q') as carrier: assert carrier == {}\n"
        "with tracing.running({}, job='a', task='t', queue='q', attempt=1) as ended: ended(Returned())\n"
        "facts = {'job': 'a', 'task': 't', 'queue': 'q', 'attempt': 1}\n"
        "tracing.settled({'traceparent': 'x'}, Returned(), **facts, times=(1, 2, 3))\n"
        "tracing.flush()\n"
        "assert not [name for name in sys.modules if name.startswith('opentelemetry')]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=30)


def test_that_a_driver_has_imported_opentelemetry_is_no_wish_for_spans(monkeypatch):
    assert tracing.is_on()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    assert not tracing.is_on()
    assert enqueued() == {}
    assert spans() == {}


def test_a_collector_that_does_not_answer_keeps_no_worker_from_leaving(monkeypatch):
    """The exporters of the SDK take no notice of a timeout."""
    answered = threading.Event()
    monkeypatch.setattr(PROVIDER, "force_flush", lambda _: answered.wait(600.0))
    tracing.flush(0.01)
    answered.set()
