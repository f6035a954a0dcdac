"""`millpond simulate`: a workload through a policy, for people and for programs."""

from __future__ import annotations

import importlib.util

import pytest

from millpond.cli.commands import simulate
from tests.cli.conftest import URL, add_job


@pytest.fixture
def trace(folder):
    path = folder / "trace.csv"
    path.write_text("minute,count\n" + "".join(f"{n},{60 + n % 7 * 20}\n" for n in range(10)))
    return str(path)


def test_a_trace_answers_with_waits_hours_and_the_bound(ask, trace):
    found = ask("simulate", trace, "--service", "exp:2s", "--max-wait", "5s", "--workers", "1:20")
    assert found["jobs"] == 1080
    assert found["p50_wait"] <= found["p95_wait"] <= found["p99_wait"]
    assert found["p95_wait"] <= 5.0
    assert found["worker_hours"] >= found["work_hours"]
    assert {"ratio_to_bound", "starts", "reversals", "slo_miss_minutes"} <= found.keys()


def test_people_get_a_table_and_charts(run, trace):
    shown = run("simulate", trace, "--service", "exp:2s").stdout
    assert "worker-hours" in shown
    assert "kept" in shown
    assert "█" in shown


def test_policies_are_compared_at_the_same_wait(ask, trace):
    found = ask("simulate", trace, "--service", "fixed:2s", "--compare")["comparison"]
    assert [row["policy"].split(" ")[0] for row in found[:3]] == ["wait"] * 3
    assert {row["policy"].split(" ")[0] for row in found} >= {"keda", "hpa", "celery", "latency", "knative"}
    by_law = {row["policy"].split(" ")[0]: row for row in found}
    assert by_law["celery"]["is_edge"]
    for row in found:
        assert (row["hours_at_wait"] is None) == (row["p95_wait"] > 10.0)
        assert row["hours_at_wait"] is None or row["hours_at_wait"] <= row["worker_hours"]


def test_other_laws_are_shown_as_the_option_takes_them_and_whether_they_keep_the_wait(run, trace):
    lines = run(
        "simulate", trace, "--service", "fixed:2s", "--max-wait", "1s", "--compare"
    ).stdout.splitlines()
    law = next(line.split() for line in lines if line.startswith("latency:"))
    assert "no" in law  # it looks every ten seconds only
    run("simulate", trace, "--service", "fixed:2s", "--policy", law[0])


def test_what_takes_long_is_said_to_before_it_begins(run, trace, monkeypatch):
    assert "jobs are simulated" not in run("simulate", trace, "--service", "exp:2s").stderr
    monkeypatch.setattr(simulate, "MANY", 10)
    said = run("simulate", trace, "--service", "exp:2s", "--json")
    assert "jobs are simulated; this takes a while" in said.stderr
    assert "simulated" not in said.stdout


def test_the_name_of_a_scenario_is_enough(ask, run, folder):
    assert ask("simulate", "s6", "--max-wait", "2s")["workload"] == "S6"
    (folder / "S6").write_text("minute,count\n0,7\n")
    found = ask("simulate", str(folder / "S6"), "--service", "exp:1s")  # a file of that name is a file
    assert found["jobs"] == 7


def test_the_history_of_a_store_can_be_replayed(ask, run, store):
    for _ in range(5):
        add_job(store)
    found = ask("simulate", "--history", "1h", "--service", "exp:1s", "--store", URL)
    assert found["jobs"] == 5
    run("simulate", "--history", "1h", "--queue", "none", "--store", URL, code=2)


@pytest.fixture
def jobs(folder):
    path = folder / "jobs.csv"
    path.write_text("arrival,service,task\n" + "0,5,images\n" * 10 + "1,1,mail\n")
    return str(path)


def test_jobs_share_a_budget_and_it_is_told_what_they_waited_for(ask, run, jobs):
    options = ["simulate", jobs, "--budget", "memory=8GB,cpu=4", "--need", "images:memory=2GB,cpu=0.5"]
    found = ask(*options)["resources"]
    assert found["peak"] == {"memory": 8_000_000_000, "cpu": 2.0}
    assert found["binding"] == "memory"
    assert found["waited"]["memory"] > 0
    shown = " ".join(run(*options).stdout.split())
    assert "8 GB of 8 GB of memory, 2 of 4 cores" in shown
    assert "s for memory" in shown


def test_a_job_that_never_fits_is_told_at_once(run, jobs):
    told = run("simulate", jobs, "--budget", "memory=1GB", "--need", "images:memory=2GB", code=2).stderr
    assert "'images' need 2 GB of memory and the budget has 1 GB" in told


@pytest.mark.parametrize(
    "wrong",
    [
        ["--scenario", "S5", "--need", "memory=1GB"],
        ["--scenario", "S5", "--budget", "memory=1GB"],
        ["--scenario", "S5", "--budget", "memory", "--need", "memory=1GB"],
        ["--scenario", "S5", "--budget", "memory=1GB", "--need", "images:memory=1GB"],
        ["--scenario", "S13:soon"],
        [],
        ["--scenario", "S1", "--history", "1d"],
        ["--scenario", "S77"],
        ["none.csv", "--service", "exp:3s"],
        ["--scenario", "S5", "--policy", "best"],
        ["--scenario", "S5", "--workers", "9:1"],
        ["--scenario", "S5", "--max-wait", "0"],
        ["--scenario", "S5", "--scale", "5"],
        ["S5", "--scale", "5"],
        ["--history", "1d", "--scale", "5"],
        ["--scenario", "S5", "--service", "norm:1"],
    ],
)
def test_what_cannot_be_simulated_is_refused(run, wrong):
    run("simulate", *wrong, code=2)


@pytest.mark.skipif(importlib.util.find_spec("matplotlib") is not None, reason="matplotlib is installed")
def test_without_matplotlib_a_picture_is_refused_with_what_to_install(run, trace):
    result = run("simulate", trace, "--service", "fixed:1s", "--chart", "out.png", code=2)
    assert "millpond[charts]" in result.stderr
