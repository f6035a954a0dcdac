"""Jobs that need memory, cores or tokens: real workers, real memory, on budgets scaled down."""

from __future__ import annotations

import os
import threading
import time
from pathlib import Path

import pytest

from millpond import App, Node, Resources
from millpond.job import JobState, Priority
from millpond.node.observability.events import WorkerGone
from tests.node.waiting import all_ended, ended, until

MB = 1_000_000


def hold(size: int, folder: str, go_on: str = "") -> int:
    """Use so many bytes, note when, and hold them until `go_on` exists (or for a moment)."""
    memory = bytearray(size)
    for place in range(0, size, 4096):
        memory[place] = 1
    mark = Path(folder, f"{os.getpid()}-{time.monotonic_ns()}")
    mark.write_text("")
    try:
        end = time.monotonic() + (20 if go_on else 0.3)
        while time.monotonic() < end and not (go_on and os.path.exists(go_on)):
            time.sleep(0.005)
    finally:
        mark.unlink()
    return len(memory)


class Crowd:
    """Counts how many jobs hold memory at the same time, by their marks in a folder."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.most = 0
        self._guard = threading.Lock()
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._watch, daemon=True)
        self._thread.start()

    def now(self) -> int:
        """Of those that live: one that was killed leaves its mark behind. Whoever looks has seen them."""
        with self._guard:
            marks = [mark.name.partition("-")[0] for mark in self.folder.iterdir()]
            number = sum(os.path.exists(f"/proc/{pid}") for pid in marks)
            self.most = max(self.most, number)
            return number

    def _watch(self) -> None:
        while not self._stop.wait(0.01):
            self.now()

    def stop(self) -> int:
        self._stop.set()
        self._thread.join()
        return self.most


@pytest.fixture
def crowd(tmp_path):
    folder = tmp_path / "crowd"
    folder.mkdir()
    found = Crowd(folder)
    yield found
    found.stop()


def test_ten_large_jobs_never_run_more_than_fit(local, start, crowd):
    local.pool("default", workers=5)
    large = local.task(resources=Resources(memory="200MB"))(hold)
    handles = large.enqueue_many([(150 * MB, str(crowd.folder))] * 10)
    start(local, budget=Resources(memory="600MB"))
    jobs = all_ended(handles)
    assert {(job.state, job.attempt) for job in jobs} == {(JobState.COMPLETED, 1)}
    assert 2 <= crowd.stop() <= 3


def test_a_job_that_needs_everything_runs_while_small_ones_keep_arriving(local, start, crowd):
    local.pool("default", workers=4)
    large = local.task(name="large", resources=Resources(memory="400MB"))(hold)
    small = local.task(name="small", resources=Resources(memory="100MB"))(hold)
    start(local, budget=Resources(memory="400MB"))
    folder, enough = str(crowd.folder), threading.Event()

    def keep_coming() -> None:
        while not enough.wait(0.05):
            small.enqueue(10 * MB, folder)

    small.enqueue_many([(10 * MB, folder)] * 4)
    until(lambda: crowd.now() > 1, "small ones run")
    stream = threading.Thread(target=keep_coming)
    stream.start()
    try:
        job = ended(large.enqueue(300 * MB, folder))
    finally:
        enough.set()
        stream.join()
    assert (job.state, job.attempt) == (JobState.COMPLETED, 1)


def test_a_job_that_lies_is_learned_and_those_after_it_are_given_what_they_use(local, start, crowd, tmp_path):
    local.pool("default", workers=4)
    liar = local.task(resources=Resources(memory="10MB"))(hold)
    node = start(local, budget=Resources(memory="500MB"))
    ended(liar.enqueue(200 * MB, str(crowd.folder)))  # seen alone: from here on it is known
    until(lambda: node._state.budget.needs.longest(liar.name), "the node has learned")
    until(lambda: not node._state.budget.measured.by_job, "it was seen to end")
    crowd.most = 0
    handles = liar.enqueue_many([(200 * MB, str(crowd.folder))] * 6)
    assert {job.state for job in all_ended(handles)} == {JobState.COMPLETED}
    assert crowd.stop() <= 2
    node.stop()
    heir = start(local, budget=Resources(memory="500MB"))  # knows it before it has seen one
    job = liar.enqueue(1 * MB, str(crowd.folder)).job()
    given = heir._state.budget.needs.need_of(job, heir._state.budget.means, time.monotonic())
    assert given.memory > 150 * MB


def test_a_declaration_that_is_kept_is_not_overruled(local, start, crowd, caplog):
    local.pool("default", workers=4)
    honest = local.task(resources=Resources(memory="200MB"))(hold)
    node = start(local, budget=Resources(memory="420MB"))
    ended(honest.enqueue(185 * MB, str(crowd.folder)))
    until(lambda: node._state.budget.needs.longest(honest.name), "the node has learned")
    until(lambda: not node._state.budget.measured.by_job, "it was seen to end")
    crowd.most = 0
    jobs = all_ended(honest.enqueue_many([(185 * MB, str(crowd.folder))] * 4))
    assert {(job.state, job.attempt) for job in jobs} == {(JobState.COMPLETED, 1)}
    assert crowd.stop() == 2
    assert "declares" not in caplog.text


def test_beyond_the_budget_the_newest_is_stopped_which_costs_it_no_error_and_all_get_done(
    local, start, crowd, tmp_path
):
    local.pool("default", workers=4)
    liar = local.task(resources=Resources(memory="10MB"))(hold)
    go_on = tmp_path / "go on"
    handles = liar.enqueue_many([(200 * MB, str(crowd.folder), str(go_on))] * 4)
    node, gone = start(local, budget=Resources(memory="500MB")), list[WorkerGone]()
    node.subscribe(gone.append, [WorkerGone])
    stopped = until(lambda: [h for h in handles if h.job().attempts], "one was stopped")
    until(lambda: crowd.now() <= 2, "it fits again")
    assert {event.reason for event in until(lambda: list(gone), "its worker is gone")} == {"memory"}
    go_on.write_text("")
    jobs = all_ended(handles)
    assert {(job.state, job.errors, job.crashes) for job in jobs} == {(JobState.COMPLETED, 0, 0)}
    (first, *_) = next(job for job in jobs if job.id == stopped[0].id).attempts
    assert (first.ended, first.error) == ("out of memory", "OutOfMemory")
    assert "stopped by its node" in (first.message or "")


def test_a_job_that_uses_more_than_there_is_ends_dead_and_says_so(local, start, crowd):
    task = local.task(hold)
    start(local, budget=Resources(memory="100MB"))
    job = ended(task.enqueue(200 * MB, str(crowd.folder), "never"))
    assert (job.state, job.reason, job.errors) == (JobState.DEAD, "memory", 0)
    assert "no more to give" in (job.attempts[-1].message or "")


def test_what_no_node_could_ever_run_ends_dead_with_the_reason(local, start):
    @local.task(resources=Resources(memory="2TB"))
    def vast() -> None:
        raise AssertionError

    handle = vast.enqueue()
    node = start(local, budget=Resources(memory="1GB"))
    until(lambda: "more than any node" in handle.why(), "why says so")
    node._state.budget.patience = 0.0
    node._state.budget._left_until.clear()
    job = ended(handle)
    assert (job.state, job.reason, job.attempt) == (JobState.DEAD, "resources", 0)
    assert "needs 2 TB of memory" in (job.attempts[-1].message or "")


def test_what_waits_for_memory_holds_up_nobody_else_and_says_why_it_waits(local, start, crowd, tmp_path):
    local.pool("default", workers=2)
    go_on = tmp_path / "go on"
    large = local.task(name="large", resources=Resources(memory="300MB"))(hold)

    @local.task
    def ping() -> str:
        return "pong"

    @local.task(resources=Resources(memory="50MB"), priority=Priority.CRITICAL)
    def urgent() -> str:
        return "done"

    start(local, budget=Resources(memory="400MB"), lease=2)
    first = large.enqueue(10 * MB, str(crowd.folder), str(go_on))
    until(crowd.now, "the first runs")
    second = large.enqueue(10 * MB, str(crowd.folder))
    until(lambda: "300 MB of memory" in second.why(), "why says so")
    assert ping.enqueue().result(timeout=30) == "pong"
    assert urgent.enqueue().result(timeout=30) == "done"
    go_on.write_text("")
    assert {job.state for job in all_ended([first, second])} == {JobState.COMPLETED}


def test_a_job_that_waits_for_memory_can_be_cancelled_and_goes_back_when_the_node_drains(
    local, start, crowd, tmp_path
):
    local.pool("default", workers=4)
    go_on = tmp_path / "go on"
    large = local.task(resources=Resources(memory="300MB"))(hold)
    node = start(local, budget=Resources(memory="400MB"))
    first = large.enqueue(10 * MB, str(crowd.folder), str(go_on))
    until(crowd.now, "the first runs")
    second = large.enqueue(10 * MB, str(crowd.folder))
    until(lambda: second.job().state == JobState.RUNNING, "it is claimed")
    second.cancel()
    assert ended(second).state == JobState.CANCELLED
    third = large.enqueue(10 * MB, str(crowd.folder))
    until(lambda: third.job().state == JobState.RUNNING, "it is claimed")
    node.drain(20.0)
    until(lambda: third.job().state == JobState.QUEUED, "it is given back")
    go_on.write_text("")
    assert ended(first).state == JobState.COMPLETED
    assert third.job().attempt == 0


def test_an_idle_worker_that_keeps_memory_goes_when_another_job_needs_it(local, start, crowd):
    local.pool("default", workers=1)

    @local.task
    def leak(size: int) -> int:
        os.kept = bytearray(b"x" * size)  # type: ignore[attr-defined]
        time.sleep(0.3)  # long enough to be seen
        return os.getpid()

    large = local.task(resources=Resources(memory="400MB"))(hold)
    start(local, budget=Resources(memory="400MB"))
    pid = leak.enqueue(100 * MB).result(timeout=30)
    assert ended(large.enqueue(10 * MB, str(crowd.folder))).state == JobState.COMPLETED
    assert not os.path.exists(f"/proc/{pid}")


def test_what_waits_long_is_left_to_a_node_that_has_room(local, start, crowd, tmp_path, monkeypatch):
    monkeypatch.setattr("millpond.node.resources.budget.ELSEWHERE", 0.2)
    local.pool("default", workers=2)
    go_on = tmp_path / "go on"
    large = local.task(resources=Resources(memory="300MB"))(hold)
    busy = start(local, budget=Resources(memory="400MB"), lease=2)
    first = large.enqueue(10 * MB, str(crowd.folder), str(go_on))
    until(crowd.now, "the first runs")
    second = large.enqueue(10 * MB, str(crowd.folder))
    until(lambda: second.job().state == JobState.RUNNING, "the node keeps it")
    other = start(local, budget=Resources(memory="400MB"), lease=2)
    job = ended(second)
    assert (job.state, len(job.attempts)) == (JobState.COMPLETED, 1)
    assert job.attempts[0].node == other._state.identity.id != busy._state.identity.id
    go_on.write_text("")
    assert ended(first).state == JobState.COMPLETED


def test_jobs_share_the_tokens_and_cores_of_a_node(local, start, crowd, tmp_path):
    local.pool("default", workers=4)
    gpu = local.task(name="gpu", resources=Resources(gpu=1))(hold)
    core = local.task(name="core", resources=Resources(cpu=1))(hold)
    start(local, budget=Resources(cpu=2, gpu=2))
    for task in (gpu, core):
        go_on = tmp_path / f"{task.name} may go on"
        handles = task.enqueue_many([(1, str(crowd.folder), str(go_on))] * 5)
        until(lambda: crowd.now() == 2, "two run")
        go_on.write_text("")
        assert {job.state for job in all_ended(handles)} == {JobState.COMPLETED}
    assert crowd.stop() == 2


def test_a_token_of_the_fleet_is_shared_by_all_nodes(tmp_path, start, crowd):
    app = App(f"sqlite:///{tmp_path / 'jobs.db'}", tokens={"ffmpeg": 1})
    app.pool("default", workers=2)
    convert = app.task(resources=Resources(ffmpeg=1))(hold)
    start(app)
    start(app)
    handles = convert.enqueue_many([(1, str(crowd.folder))] * 4)
    assert {job.state for job in all_ended(handles)} == {JobState.COMPLETED}
    assert crowd.stop() == 1
    app.store.close()


def test_libraries_take_as_many_threads_as_their_task_has_cores(local, start, monkeypatch):
    monkeypatch.setenv("MKL_NUM_THREADS", "7")
    monkeypatch.delenv("OMP_NUM_THREADS", raising=False)

    @local.task(resources=Resources(cpu=2.5))
    def threads() -> list[str | None]:
        return [
            os.environ.get(name) for name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS")
        ]

    @local.task(queue="other")
    def unlimited() -> str | None:
        return os.environ.get("OMP_NUM_THREADS")

    start(local)
    assert threads.enqueue().result(timeout=30) == ["2", "2", "7"]
    assert unlimited.enqueue().result(timeout=30) is None


@pytest.mark.parametrize("wrong", [{"memory": "8GB"}, 5])
def test_a_budget_must_be_resources(local, wrong):
    local.task(hold)
    with pytest.raises(ValueError, match="budget must be"):
        Node(local, budget=wrong)
