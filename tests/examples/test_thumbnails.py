"""The demonstration, run for real: what it prints, how it ends, and that its accounts can fail."""

from __future__ import annotations

import os
import pty
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from PIL import Image

from examples import thumbnails
from examples.thumbnails import Check, Input, Outcome

PROGRAM = Path(thumbnails.__file__)
PATIENCE = 60
pytestmark = pytest.mark.timeout(2 * PATIENCE)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(PROGRAM), *arguments],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )


def run_on_a_terminal(*arguments: str, **environment: str) -> tuple[int, str]:
    """What a person would see, escape sequences included."""
    ours, theirs = pty.openpty()
    variables = {name: value for name, value in os.environ.items() if name not in ("NO_COLOR", "FORCE_COLOR")}
    size = {"TERM": "xterm-256color", "COLUMNS": "100", "LINES": "40"}
    process = subprocess.Popen(
        [sys.executable, str(PROGRAM), *arguments],
        stdout=theirs,
        stderr=theirs,
        stdin=subprocess.DEVNULL,
        env={**variables, **size, **environment},
    )
    os.close(theirs)
    seen = b"".join(iter(lambda: read(ours), b""))
    os.close(ours)
    return process.wait(PATIENCE), seen.decode()


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 65536)
    except OSError:  # how a terminal says that the other side is closed
        return b""


def test_every_input_is_accounted_for_whatever_goes_wrong(tmp_path: Path) -> None:
    done = run("--images", "24", "--workers", "2", "--keep", str(tmp_path / "kept"))
    assert done.returncode == 0, done.stdout + done.stderr
    assert not done.stderr
    assert "WRONG" not in done.stdout
    assert done.stdout.count("  ok  ") == 7
    assert "24 inputs and 24 outcomes, exactly one for each" in done.stdout
    assert "19 thumbnails opened and found whole" in done.stdout
    assert "5 failures: the 5 inputs that misbehave, no other" in done.stdout
    assert "Workers replaced: 2 crashed, 2 hung, 1 too large" in done.stdout
    assert ", 0 processes left" in done.stdout
    assert len(list((tmp_path / "kept" / "thumbnails").iterdir())) == 19
    assert len(list((tmp_path / "kept" / "photos").iterdir())) == 24


def test_the_summary_names_each_failed_input_with_its_error_and_where_it_was() -> None:
    summary = run("--images", "12", "--workers", "2").stdout.partition("what its caller got")[2]
    for line in (
        r"photo-\d+ +exit_hard +WorkerDied: exit code 3 +-",
        r"photo-\d+ +segfault +WorkerDied: SIGSEGV +ctypes:\d+ string_at",
        r"photo-\d+ +oversleep +TaskTimeout: after 3 s +thumbnails.py:\d+ oversleep",
        r"photo-\d+ +backtrack +TaskTimeout: after 3 s +re:\d+ match",
        r"photo-\d+ +swell +MemoryExceeded: over 100 MB +thumbnails.py:\d+ swell",
    ):
        assert len(re.findall(line, summary)) == 1, (line, summary)


@pytest.fixture(scope="module")
def calm_run() -> subprocess.CompletedProcess[str]:
    return run("--images", "8", "--calm")


def test_a_calm_run_fails_nothing_and_replaces_nobody(calm_run: subprocess.CompletedProcess[str]) -> None:
    done = calm_run
    assert done.returncode == 0, done.stdout + done.stderr
    assert "8 thumbnails opened and found whole" in done.stdout
    assert "what its caller got" not in done.stdout
    assert "Workers replaced: 0 crashed, 0 hung, 0 too large, 0 recycled" in done.stdout


def test_a_terminal_gets_a_live_table_of_workers_in_colour() -> None:
    code, seen = run_on_a_terminal("--images", "8", "--calm")
    assert code == 0, seen
    assert "running for" in seen
    assert "\x1b[32m" in seen
    assert "\x1b[?25h" in seen, "the cursor is hidden for good"


def test_no_color_is_honoured() -> None:
    code, seen = run_on_a_terminal("--images", "8", "--calm", NO_COLOR="1")
    assert code == 0, seen
    assert "running for" in seen
    assert not re.search(r"\x1b\[[0-9;]*(3[0-9]|4[0-9]|9[0-7])(;[0-9;]*)?m", seen)


def test_without_a_terminal_there_are_only_plain_lines(calm_run: subprocess.CompletedProcess[str]) -> None:
    assert "\x1b" not in calm_run.stdout
    last = r"resize 8/8, \d workers: done 8 crashed 0 timed out 0 recycled 0 waiting 0"
    assert re.search(last, calm_run.stdout)


def test_a_folder_with_something_in_it_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    done = run("--keep", str(tmp_path))
    assert done.returncode == 2
    assert "new or an empty folder" in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


# --- the accounts themselves ---------------------------------------------------------------------------
@pytest.fixture
def inputs(tmp_path: Path) -> list[Input]:
    """Four inputs, all done, no worker involved."""
    planned = thumbnails.plan(tmp_path, 4, calm=True)
    for number, each in enumerate(planned):
        thumbnails.paint(each.photo, number)
        thumbnails.resize(each.photo, each.thumbnail)
    return planned


def verdicts(checks: Sequence[Check]) -> list[bool]:
    return [check.holds for check in checks]


def test_the_accounts_hold_when_all_is_well(inputs: list[Input]) -> None:
    outcomes = [Outcome(each, None) for each in inputs]
    assert verdicts(thumbnails.accounts_of_inputs(inputs, outcomes)) == [True, True, True, True]


def test_an_outcome_that_is_missing_or_comes_twice_is_noticed(inputs: list[Input]) -> None:
    outcomes = [Outcome(each, None) for each in inputs]
    assert not verdicts(thumbnails.accounts_of_inputs(inputs, outcomes[1:]))[0]
    assert not verdicts(thumbnails.accounts_of_inputs(inputs, [*outcomes, outcomes[0]]))[0]


def test_a_thumbnail_that_is_missing_cut_short_or_of_the_wrong_shape_is_noticed(inputs: list[Input]) -> None:
    outcomes = [Outcome(each, None) for each in inputs]
    whole = inputs[0].thumbnail.read_bytes()
    inputs[0].thumbnail.unlink()
    assert verdicts(thumbnails.accounts_of_inputs(inputs, outcomes)) == [True, False, False, True]
    inputs[0].thumbnail.write_bytes(whole[: len(whole) // 2])
    assert verdicts(thumbnails.accounts_of_inputs(inputs, outcomes)) == [True, False, True, True]
    Image.new("RGB", (7, 7)).save(inputs[0].thumbnail)
    assert verdicts(thumbnails.accounts_of_inputs(inputs, outcomes)) == [True, False, True, True]


def test_an_innocent_input_that_fails_is_noticed(inputs: list[Input]) -> None:
    inputs[0].thumbnail.unlink()
    outcomes = [Outcome(inputs[0], OSError("lost")), *(Outcome(each, None) for each in inputs[1:])]
    assert verdicts(thumbnails.accounts_of_inputs(inputs, outcomes)) == [True, True, True, False]


def test_accounts_that_do_not_hold_make_the_program_fail(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(thumbnails, "is_whole", lambda each: False)
    monkeypatch.setattr(sys, "argv", ["thumbnails.py", "--images", "3", "--calm"])
    assert thumbnails.main() == 1
    printed = capsys.readouterr().out
    assert "WRONG 0 thumbnails opened and found whole, of 3 reported done" in printed
    assert "The accounts do not hold." in printed
