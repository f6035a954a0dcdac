"""The demonstration, run for real and small: its table, its end, and that its accounts can fail."""

from __future__ import annotations

import csv
import os
import pty
import re
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import NamedTuple

import psutil
import pytest

from examples.rush import plan, tasks
from examples.rush.accounts import Accounts, settle_accounts
from examples.rush.plan import Piece
from examples.rush.shop import Shop
from millpond import App

ROOT = Path(__file__).parents[2]
PATIENCE = 150
JOBS = 60
COMMAND = (sys.executable, "-m", "examples.rush", "--jobs", str(JOBS), "--seconds", "8", "--seed", "1")
pytestmark = pytest.mark.timeout(2 * PATIENCE)


class Done(NamedTuple):
    code: int
    printed: str
    folder: Path


@pytest.fixture(scope="module")
def rush(tmp_path_factory: pytest.TempPathFactory) -> Done:
    """One small rush, without a terminal; all tests look at the same."""
    folder = tmp_path_factory.mktemp("rush")
    done = subprocess.run(
        [*COMMAND, "--folder", str(folder)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert not done.stderr, done.stderr
    return Done(done.returncode, done.stdout, folder)


def test_no_job_is_lost_though_workers_and_a_node_are_killed(rush: Done) -> None:
    assert rush.code == 0, rush.printed
    row = re.search(r"^all +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) +(\d+) ", rush.printed, re.MULTILINE)
    assert row is not None, rush.printed
    enqueued, completed, _retried, _recovered, dead, lost = map(int, row.groups())
    assert (enqueued, completed, dead, lost) == (JOBS, JOBS - 3, 3, 0)
    assert re.search(r"Killed on purpose: [12] workers and 1 of 3 nodes", rush.printed)
    assert "ended with 0, 0; processes left: 0." in rush.printed
    assert "No job was lost" in rush.printed


def test_the_dead_are_named_with_their_causes(rush: Done) -> None:
    for line in (
        r"1 +export_orders +crashed +its worker died each time: SIGKILL",
        r"1 +notify +failed +Gone: answered 410",
        r"1 +resize +crashed +its worker died each time: SIGSEGV",
    ):
        assert len(re.findall(line, rush.printed)) == 1, (line, rush.printed)


def test_without_a_terminal_there_are_only_plain_lines(rush: Done) -> None:
    assert "\x1b" not in rush.printed
    assert re.search(
        r"\d+ of \d+ ended, \d+/s; waiting\+running on workers: images \d+\+\d+ on \d+", rush.printed
    )


def test_it_says_where_to_look_next_and_the_command_works(rush: Done) -> None:
    store = f"sqlite:///{rush.folder}/jobs.db"
    assert f"export MILLPOND_STORE={store}" in rush.printed
    shown = subprocess.run(
        [sys.executable, "-m", "millpond", "dead", "--store", store],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=True,
    )
    assert shown.stdout.count("crashed") >= 2


# --- the accounts themselves ---------------------------------------------------------------------------
def accounts_of(folder: Path) -> Accounts:
    shop, app = Shop(folder), App(f"sqlite:///{folder}/jobs.db")
    with (folder / "ledger.csv").open() as file:
        for row in csv.DictReader(file):
            shop.ledger[row["job"]] = Piece(int(row["number"]), row["queue"], row["fate"])  # type: ignore[arg-type]
    try:
        return settle_accounts(shop, app.store, tasks.QUEUES)
    finally:
        app.store.close()


def test_an_effect_that_is_missing_counts_as_a_lost_job_whatever_the_store_says(rush: Done) -> None:
    assert accounts_of(rush.folder).lost == []
    book, picture = rush.folder / "mail.log", next((rush.folder / "images").glob("*.jpg"))
    lines, content = book.read_text().splitlines(), picture.read_bytes()
    gone = lines[0]
    try:
        book.write_text("".join(f"{line}\n" for line in lines if line != gone))
        picture.write_bytes(content[: len(content) // 2])
        found = accounts_of(rush.folder)
    finally:
        book.write_text("".join(f"{line}\n" for line in lines))
        picture.write_bytes(content)
    assert found.total.lost == len(found.lost) == 2
    assert found.lost[0].startswith(f"images {int(picture.stem)}: ")
    assert found.lost[1].startswith(f"mail {gone}: ")


def test_a_job_that_the_store_has_forgotten_counts_as_lost(rush: Done) -> None:
    ledger = rush.folder / "ledger.csv"
    kept = ledger.read_text()
    try:
        with ledger.open("a") as file:
            file.write("01a1e240-0000-7000-8000-000000000000,99999,mail,fine\n")
        assert accounts_of(rush.folder).lost == ["mail 99999: the store does not know it any more"]
    finally:
        ledger.write_text(kept)


# --- interrupted, on a terminal ------------------------------------------------------------------------
def reads(terminal: int) -> Iterator[bytes]:
    """What is printed, until the other side is closed."""
    while True:
        try:
            yield os.read(terminal, 65536)
        except OSError:
            return


def test_ctrl_c_leaves_no_process_and_no_file_and_gives_the_terminal_back(tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, "--folder", str(tmp_path / "rush")],
        cwd=ROOT,
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm-256color", "COLUMNS": "120", "LINES": "40"},
        # Whoever runs the tests in the background of a shell passes on that Ctrl-C is ignored
        preexec_fn=partial(signal.signal, signal.SIGINT, signal.SIG_DFL),  # noqa: PLW1509
    )
    os.close(theirs)
    seen = b""
    family: list[psutil.Process] = []
    for piece in reads(ours):
        seen += piece
        if not family and b"p95 wait" in seen:
            family = psutil.Process(process.pid).children(recursive=True)
            process.send_signal(signal.SIGINT)
    os.close(ours)
    assert process.wait(PATIENCE) == 130, seen.decode()
    assert len(family) > 10
    assert psutil.wait_procs(family, timeout=30)[1] == []
    assert not (tmp_path / "rush").exists()
    assert b"Interrupted: no process and no file is left." in seen
    assert seen.rindex(b"\x1b[?25h") > seen.rindex(b"\x1b[?25l"), "the cursor is hidden for good"


# --- the plan -------------------------------------------------------------------------------------------
@pytest.mark.parametrize("jobs", [50, 333, 10_000])
def test_the_bursts_bring_all_jobs_and_most_of_them_at_noon(jobs: int) -> None:
    sizes = plan.bursts(jobs)
    assert (sum(sizes), len(sizes)) == (jobs, plan.BURSTS)
    assert max(sizes) in sizes[3:7]
    assert all(size >= len(fates) for size, fates in zip(sizes, plan.fates(jobs), strict=True))


@pytest.mark.parametrize("jobs", [50, 2500, 10_000])
def test_a_rush_of_any_size_has_a_few_jobs_of_each_kind_beyond_help(jobs: int) -> None:
    dealt = [fate for fates in plan.fates(jobs) for fate in fates]
    assert {dealt.count(fate) for fate in plan.DOOMED} == {max(1, min(3, jobs // 1000))}


def test_workers_are_killed_while_work_arrives_and_is_worked_off() -> None:
    when = list(plan.kills(100.0, 12))
    assert when == sorted(when)
    assert (when[0], len(when)) == (10.0, 12)
    assert when[-1] < 80


def test_a_machine_that_falls_behind_gets_smaller_bursts_and_a_faster_one_larger() -> None:
    planned = [300, 200, 100]
    assert plan.next_burst(planned, backlog=400, can_do=1000) == 300
    assert plan.next_burst(planned, backlog=900, can_do=1000) == 50
    assert plan.next_burst(planned, backlog=2000, can_do=1000) == plan.MOST_FATES
    assert plan.next_burst(planned, backlog=0, can_do=2000) == 1000


def test_a_round_of_the_mix_is_worth_as_many_jobs_as_it_has() -> None:
    counts = {queue: plan.MIX.count(queue) for queue in plan.WORK}
    assert plan.in_jobs_of_the_mix(counts) == pytest.approx(len(plan.MIX))
    assert max(map(len, plan.fates(10_000))) <= plan.MOST_FATES
