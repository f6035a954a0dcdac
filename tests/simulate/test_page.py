"""The benchmark's page: what it says of the laws comes from the points, and from none but those it names."""

from __future__ import annotations

import importlib
import re
from pathlib import Path
from typing import Any

import pytest

from millpond.rules.scaling.bounds import LEAST_IDLE

PROGRAMS = Path(__file__).resolve().parents[2] / "bench" / "scale"
RESULTS = dict.fromkeys(("start", "decision", "trace", "rush"))
FRESH, OTHER = 4, 1  # the seeds


@pytest.fixture
def page(monkeypatch) -> Any:
    monkeypatch.syspath_prepend(str(PROGRAMS))
    return importlib.import_module("page")


def row(policy: str, p95: float, hours: float, seed: int = FRESH) -> dict[str, Any]:
    return {
        "scenario": "S1", "service": "exp:3s", "seed": seed, "policy": policy, "p95_wait": p95,
        "worker_hours": hours, "ratio_to_bound": 1.1, "starts": 1234, "starts_share": 0.001, "work_lost": 0.0,
        "p99_wait": p95, "work_hours": 80.0, "bound_hours": 81.0,
        "part": ["S1", "exp:3s", policy, 0.01, seed, 1],
    }  # fmt: skip


def swept(page: Any) -> list[dict[str, Any]]:
    """Ours just at the wait with 90 hours, Celery's keep-alives with 100 and more, the others with 120."""
    rows = []
    for seed in (FRESH, OTHER):
        for name, found in page.EVERYTHING.items():
            if found.family == "wait":
                rows.append(row(name, found.knob, 90.0, seed))
            elif found.family != "celery":
                rows.append(row(name, 1.0, 120.0, seed))
            elif found.knob >= 1:
                rows.append(row(name, 0.01, 99.0 + found.knob, seed))
    return rows


BELOW = [row("celery 0.5", 0.01, 96.0), row("celery 0.2", 0.01, 92.0)]


def table(text: str, title: str) -> list[list[str]]:
    part = text.split(f"## {title}\n", 1)[1].split("\n## ", 1)[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines[2:]]


def test_keepalives_below_a_second_have_their_own_table_and_do_not_enter_the_comparison(page):
    text = page.page([*swept(page), *BELOW], RESULTS)
    front = table(text, "Beside other laws at the same wait")
    assert front == table(page.page(swept(page), RESULTS), "Beside other laws at the same wait")
    assert [line[8] for line in front] == ["100 (+11 %)"] * 3
    assert [line[10] for line in front] == ["10.0 %"] * 3
    assert table(text, "Celery-style below a second") == [
        ["S1", "0.5 s", "96.0", "1,234", "0.01 s", "6.2 %", "6.2 %", "6.2 %"],
        ["S1", "0.2 s", "92.0", "1,234", "0.01 s", "2.2 %", "2.2 %", "2.2 %"],
    ]


def test_above_the_table_and_below_it_stands_by_how_much_they_would_narrow_it(page):
    text = " ".join(page.page([*swept(page), *BELOW], RESULTS).split())
    assert (
        "do not count here: they have the next table, and beside them ours needs 2.2 to 6.2 % fewer" in text
    )
    assert "ours needs 2.2 to 6.2 % fewer worker-hours than keep-alives of 0.5 and 0.2 s" in text
    assert "and 10.0 to 10.0 % fewer than the best of what is swept" in text


def test_where_they_are_cheaper_than_ours_the_page_says_so(page):
    cheaper = [BELOW[0], row("celery 0.2", 0.01, 80.0)]
    text = " ".join(page.page([*swept(page), *cheaper], RESULTS).split())
    assert "ours needs from 12.5 % more to 6.2 % fewer worker-hours" in text
    assert "ours needs 12.5 to 12.5 % more" in " ".join(
        page.page([*swept(page), cheaper[1]], RESULTS).split()
    )


def test_without_such_points_the_page_tells_nothing_about_them(page):
    text = page.page(swept(page), RESULTS)
    assert "below a second" not in text.lower()
    assert "{" not in text


def test_a_day_on_which_a_setting_was_not_tried_is_not_compared(page):
    rows = [found for found in swept(page) if (found["seed"], found["policy"]) != (OTHER, "keda 2")]
    front = table(page.page(rows, RESULTS), "Beside other laws at the same wait")
    assert [line[11] for line in front] == [""] * 3  # the other seed


def test_a_wait_that_ours_does_not_keep_is_not_met(page):
    rows = [found for found in swept(page) if found["policy"].split(" ")[0] != "wait"]
    rows += [
        row(f"wait {wait:g}", 9.0, 90.0, seed)
        for wait in (2, 2.8, 5, 7, 10, 14, 20)
        for seed in (FRESH, OTHER)
    ]
    front = table(page.page(rows, RESULTS), "Beside other laws at the same wait")
    assert [(line[4], line[-1]) for line in front[:2]] == [("not kept", "**no**")] * 2
    assert front[2][-1] == "yes"


# --- what it says of itself ---------------------------------------------------------------------------------
def test_the_days_are_of_the_seeds_that_are_simulated(page):
    sims = importlib.import_module("sims")
    assert sims.SEEDS == (page.CHECK, page.CHOSEN) == (FRESH, OTHER)
    parts = sims.wanted(0.01)
    assert {part.seed for part in parts} == {FRESH, OTHER}
    assert {part.seed for part in parts if part.scenario in sims.HARD} == {OTHER}


@pytest.mark.parametrize("chosen", [OTHER, 8])
def test_every_word_about_a_seed_is_of_those_that_are_there(page, monkeypatch, chosen):
    monkeypatch.setattr(page, "CHOSEN", chosen)
    rows = [{**found, "seed": chosen if found["seed"] == OTHER else FRESH} for found in swept(page)]
    text = page.page(rows, RESULTS)
    assert f"The days are of seed {FRESH}, which nobody had seen" in text
    assert {number for _, number in re.findall(r"(seed) (\d+)", text)} == {str(FRESH), str(chosen)}


def test_days_that_were_not_simulated_are_said_to_be_missing_and_no_others(page):
    assert "did not simulate" not in page.page(swept(page), RESULTS)
    fresh = [found for found in swept(page) if found["seed"] == FRESH]
    assert "were chosen (empty: this run did not simulate them). Needed" in page.page(fresh, RESULTS)


def test_never_is_explained_beside_the_table_that_says_it(page):
    rows = [found for found in swept(page) if not found["policy"].startswith("hpa")]
    rows += [row(name, 60.0, 100.0, seed) for name in page.EVERYTHING if name.startswith("hpa")
             for seed in (FRESH, OTHER)]  # fmt: skip
    text = page.page(rows, RESULTS)
    assert [line[9] for line in table(text, "Beside other laws at the same wait")] == ["never"] * 3
    part = text.split("## Beside other laws", 1)[1].split("|", 1)[0]
    assert "*never*: none of the swept settings keeps it" in part


def test_what_met_is_beside_stands_above_the_table(page):
    text = page.page([*swept(page), *BELOW], RESULTS)
    part = text.split("## Beside other laws", 1)[1].split("\n|", 1)[0]
    assert "beside Celery's law as it is swept: from 1 s to its default of 30 s" in part
    assert "So a *yes* at ≥ 10 % or ≥ 15 % does not speak of keep-alives below a second" in part


def test_what_is_kept_in_hand_is_counted_and_a_worker_idles_as_long_as_the_law_says(page):
    rows = [{**found, "p95_wait": 0.6 * found["p95_wait"]} for found in swept(page)]
    text = page.page(rows, RESULTS)
    assert "Of the wait it is asked for ours leaves 40 to 40 % in hand" in text
    assert f"a worker idles for {LEAST_IDLE:g} s before it leaves" in text


# --- deciding -----------------------------------------------------------------------------------------------
def test_deciding_has_a_verdict_with_a_maximum_of_the_node_and_without(page):
    shared = {"seconds": 0.006, "deciding": 0.0011}
    found = {"seconds": 0.005, "deciding": 0.0009, "shared": shared}
    text = page.page([], {**RESULTS, "decision": found})
    assert table(text, "Deciding, on a node") == [
        ["no maximum", "5.00 ms", "0.90 ms", "< 1 ms", "yes"],
        ["`max_workers=128`", "6.00 ms", "1.10 ms", "< 1 ms", "**no**"],
    ]
    assert "the store is not asked" in text


def test_what_deciding_costs_is_part_of_what_a_round_costs(page, monkeypatch):
    decisions = importlib.import_module("decisions")
    monkeypatch.setattr(decisions, "ROUNDS", 2)
    found = decisions.decision_cost()
    for case in (found, found["shared"]):
        assert 0 < case["deciding"] < case["seconds"]
