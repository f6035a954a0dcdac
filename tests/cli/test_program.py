"""The program itself, as a process: a job from enqueue to replay, help without weight, pipes, `python -m`."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from pathlib import Path

import millpond.cli
from millpond.cli import COMMANDS
from tests.cli.conftest import APP, URL, add_dead_job

MILLPOND = Path(sys.executable).with_name("millpond")


def program(*args, code=0, command=(str(MILLPOND),)):
    done = subprocess.run([*command, *args], capture_output=True, text=True, timeout=50, check=False)
    assert done.returncode == code, done.stderr
    return done


def test_a_job_from_enqueue_to_replay(folder, store):
    (folder / "jobs.py").write_text('print("noise")\n' + APP)
    (folder / "pyproject.toml").write_text('[tool.millpond]\napp = "jobs:app"\n')
    made = json.loads(program("enqueue", "resize", '"a.png"', "--json").stdout)
    listed = json.loads(program("jobs", "list", "--json").stdout)
    assert [job["id"] for job in listed["jobs"]] == [made["id"]]
    dead = add_dead_job(store)
    assert dead in program("dead").stdout
    refused = program("dead", "replay", "--all", code=2)
    assert "millpond: error: this would replay 1 job: say --yes" in refused.stderr
    assert program("dead", "replay", "--all", "--yes").stdout == "1 job queued again\n"
    states = {job["id"]: job["state"] for job in json.loads(program("jobs", "--json").stdout)["jobs"]}
    assert states == {made["id"]: "queued", dead: "queued"}


def test_python_m_millpond_is_the_same_program():
    command = (sys.executable, "-m", "millpond")
    assert "python -m millpond [OPTIONS]" in program("--help", command=command).stdout
    stderr = program("jobs", code=2, command=command).stderr
    assert "no store is named" in stderr
    assert "Traceback" not in stderr


def test_help_names_every_command_and_exit_code():
    for shown in (program("--help").stdout, program().stdout):
        assert all(f"  {name} " in shown for name in COMMANDS)
        assert all(f" {code}  " in shown for code in (0, 1, 2, 3, 69, 75, 130))


def test_the_version_is_told():
    assert program("--version").stdout.startswith("millpond 0.")


def test_help_loads_nothing_heavy():
    probe = (
        "import sys; from millpond.cli import main\n"
        "try: main(['--help'])\n"
        "except SystemExit: pass\n"
        "print(sorted({'rich', 'apsw', 'msgspec', 'millpond.app', 'millpond.errors'} & set(sys.modules)))"
    )
    assert program("-c", probe, command=(sys.executable,)).stdout.endswith("[]\n")


def test_no_command_touches_a_database():
    for path in Path(millpond.cli.__file__).parent.glob("*.py"):
        source = path.read_text(encoding="utf-8")
        assert not re.search(
            r"SELECT |INSERT |store\.(sql|sqlite|postgres|redis|relational)|\.execute\(", source
        )


def test_every_command_has_help(run):
    for name in COMMANDS:
        assert "--json" in run(name, "--help").stdout or "Commands:" in run(name, "--help").stdout


def test_a_wrong_command_is_answered_with_the_nearest(run):
    assert run("job", code=2).stderr == (
        "millpond: error: there is no command 'job', did you mean 'jobs'? See `main --help`.\n"
    )
    assert "See `main jobs --help`" in run("jobs", "shwo", code=2).stderr


def test_a_reader_that_leaves_early_is_no_error(store):
    for _ in range(3):
        add_dead_job(store, "x" * 60_000)
    listing = subprocess.Popen(
        [str(MILLPOND), "jobs", "--store", URL, "--json"], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert listing.stdout
    assert listing.stderr
    listing.stdout.read(10)
    listing.stdout.close()
    assert listing.stderr.read() == b""
    listing.stderr.close()
    listing.wait(timeout=50)
