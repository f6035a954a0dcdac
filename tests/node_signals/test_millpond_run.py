"""`millpond run` under signals, with real jobs: what runs finishes, the rest goes back and pays nothing."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from millpond import App
from millpond.job import JobState
from millpond.rules.node.shutdown import ECHO
from tests.node.waiting import until
from tests.node_signals.programs import MILLPOND, Program, clean_environment, program

SOURCE = """
import signal
import time
from pathlib import Path
from millpond import App

app = App("sqlite:///jobs.db")
app.pool("one", workers=1)

@app.task(queue="one", name="hold")
def hold(name: str) -> str:
    if name == "stubborn":
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    Path(f"{name}.begun").touch()
    while not Path(f"{name}.go").exists():
        time.sleep(0.01)
    return name
"""
READY = "Ctrl-C drains"
BOUND = 40.0


class Yard:
    """A folder with an app, and its jobs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "jobs.py").write_text(SOURCE)
        self.app = App(f"sqlite:///{folder / 'jobs.db'}")

        @self.app.task(queue="one", name="hold")
        def hold(name: str) -> str:
            return name

        self.hold = hold

    @contextmanager
    def node(self, *options: str, command: tuple[str, ...] = (), app: str = "jobs:app") -> Iterator[Program]:
        env = clean_environment(PYTHONUNBUFFERED="1")
        with program(*command, str(MILLPOND), "run", app, *options, cwd=self.folder, env=env) as node:
            yield node

    def begun(self, name: str) -> None:
        """Wait until a job runs."""
        until((self.folder / f"{name}.begun").exists)

    def go(self, name: str) -> None:
        (self.folder / f"{name}.go").touch()


@pytest.fixture
def yard(tmp_path: Path) -> Iterator[Yard]:
    made = Yard(tmp_path)
    yield made
    made.app.store.close()


def unpaid(job):
    return (job.errors, job.crashes, job.lost) == (0, 0, 0)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_drain_finishes_what_runs_and_gives_back_the_rest(yard, number):
    first, *others = [yard.hold.enqueue(name) for name in ("a", "b", "c")]
    with yard.node() as node:
        node.until(READY)
        yard.begun("a")
        node.send(number)
        node.until("draining, for up to 25 s")
        yard.go("a")
        assert node.code() == 0
    assert first.job().state is JobState.COMPLETED
    for handle in others:
        job = handle.job()
        assert job.state is JobState.QUEUED
        assert unpaid(job)
    assert not yard.app.store.counts().nodes, "the lease was given up"


def test_a_second_signal_hurries_and_a_third_kills(yard):
    handle = yard.hold.enqueue("stubborn")
    with yard.node() as node:
        node.until(READY)
        yard.begun("stubborn")
        for step in ("draining", "have a second to end", "are killed"):
            node.send(signal.SIGTERM)
            node.until(step)
            time.sleep(ECHO)  # two within that time are one
        assert node.code() == 143
    assert handle.job().state in (JobState.QUEUED, JobState.SCHEDULED)
    assert not yard.app.store.counts().nodes


def test_sigquit_kills_at_once_and_the_job_is_run_again(yard):
    handle = yard.hold.enqueue("a")
    with yard.node() as node:
        node.until(READY)
        yard.begun("a")
        node.send(signal.SIGQUIT)
        assert node.code() == 131
    yard.go("a")
    with yard.node() as node:
        assert handle.result(timeout=BOUND) == "a"
        node.send(signal.SIGTERM)
        assert node.code() == 0


def test_a_drain_ends_with_its_grace_and_exit_code_0(yard):
    handle = yard.hold.enqueue("a")
    with yard.node("--grace", "1s") as node:
        node.until(READY)
        yard.begun("a")
        node.send(signal.SIGTERM)
        assert node.code() == 0
    assert handle.job().state in (JobState.QUEUED, JobState.SCHEDULED)


def test_a_held_node_claims_nothing_until_it_goes_on(yard):
    yard.go("a")
    with yard.node() as node:
        node.until(READY)
        node.send(signal.SIGTSTP)
        node.until("no more jobs are claimed until SIGCONT")
        handle = yard.hold.enqueue("a")
        assert handle.job().state is JobState.QUEUED
        node.send(signal.SIGCONT)
        assert handle.result(timeout=BOUND) == "a"
        node.send(signal.SIGTERM)
        assert node.code() == 0


def test_sighup_takes_over_grace_and_says_what_needs_a_restart(yard):
    file = yard.folder / "millpond.toml"
    file.write_text('grace = "20s"\n')
    with yard.node() as node:
        node.until("Ctrl-C drains within 20.0 s")
        file.write_text('grace = "7s"\nlease = "30s"\n')
        node.send(signal.SIGHUP)
        node.until("count from the next start on: lease")
        node.until("settings were read again")
        file.write_text("grace = \n")
        node.send(signal.SIGHUP)
        node.until("the settings stay as they were")
        node.send(signal.SIGTERM)
        node.until("draining, for up to 7 s")
        assert node.code() == 0


def test_sighup_takes_over_what_is_logged(yard):
    yard.go("a")
    yard.go("b")
    file = yard.folder / "millpond.toml"
    file.write_text('log_level = "info"\n')
    with yard.node() as node:
        node.until(READY)
        assert yard.hold.enqueue("a").result(timeout=BOUND) == "a"
        file.write_text('log_level = "debug"\n')
        node.send(signal.SIGHUP)
        node.until("settings were read again")
        assert not node.said("hold completed")
        assert yard.hold.enqueue("b").result(timeout=BOUND) == "b"
        node.until("hold completed")
        node.send(signal.SIGTERM)
        assert node.code() == 0


def test_sigterm_at_any_moment_of_the_start_is_no_hang(yard):
    (yard.folder / "slow.py").write_text("print('importing', flush=True)\n" + SOURCE)
    moments = ["importing", READY]
    for moment in moments:
        with yard.node(app="slow:app") as node:
            node.until(moment)
            node.send(signal.SIGTERM)
            assert node.code() in (0, -signal.SIGTERM)


def test_threads_of_the_app_do_not_keep_a_node_that_has_stopped(yard):
    leave = "import threading; threading.Thread(target=threading.Event().wait).start()\n"
    (yard.folder / "threads.py").write_text(SOURCE + leave)
    with yard.node(app="threads:app") as node:
        node.until(READY)
        node.send(signal.SIGTERM)
        assert node.code() == 0


@pytest.mark.parametrize("form", ["--json", "--debug"])
def test_a_reader_who_leaves_does_not_stop_the_node(yard, form):
    yard.go("a")
    handle = yard.hold.enqueue("a")
    reader, writer = os.pipe()
    os.close(reader)
    command = [str(MILLPOND), "run", "jobs:app", form]
    with open(writer, "w") as closed:
        node = subprocess.Popen(
            command, stdout=closed, stderr=subprocess.DEVNULL, cwd=yard.folder, env=clean_environment()
        )
    try:
        assert handle.result(timeout=BOUND) == "a"
        node.send_signal(signal.SIGTERM)
        assert node.wait(BOUND) == 0
    finally:
        node.kill()
        node.wait()


def test_log_lines_can_be_json(yard):
    with yard.node("--log-format", "json", "--json") as node:
        while node.until("") != "}":
            pass
        node.send(signal.SIGTERM)
        assert node.code() == 0
    logged = [json.loads(line) for line in node.lines if line.startswith('{"')]
    assert any("SIGTERM: draining" in line["message"] for line in logged)


# --- process 1 ---------------------------------------------------------------------------------------------
def can_unshare() -> bool:
    if shutil.which("unshare") is None:
        return False
    command = ["unshare", "--pid", "--fork", "--mount-proc", "true"]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


IN_ITS_OWN_NAMESPACE = ("unshare", "--pid", "--fork", "--mount-proc")
alone = pytest.mark.skipif(not can_unshare(), reason="needs the right to make a process namespace")


def inner(node: Program) -> int:
    """The process that is number 1 inside."""
    path = Path(f"/proc/{node.process.pid}/task/{node.process.pid}/children")
    until(lambda: path.read_text().split())
    return int(path.read_text().split()[0])


@alone
def test_process_1_drains(yard):
    handle = yard.hold.enqueue("a")
    with yard.node(command=IN_ITS_OWN_NAMESPACE) as node:
        node.until(READY)
        yard.begun("a")
        os.kill(inner(node), signal.SIGTERM)
        node.until("draining")
        yard.go("a")
        assert node.code() == 0
    assert handle.job().state is JobState.COMPLETED


@alone
def test_process_1_can_be_stopped_while_it_imports_the_app(yard):
    endless = "print('importing', flush=True)\nimport threading\nthreading.Event().wait()\n"
    (yard.folder / "endless.py").write_text(endless)
    with yard.node(command=IN_ITS_OWN_NAMESPACE, app="endless:app") as node:
        node.until("importing")
        os.kill(inner(node), signal.SIGTERM)
        assert node.code() == 143
