"""Every store and the model agree after every step, whatever is done in whatever order.

The short form runs in `make test`, the full one in `make proof-stores`.
"""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from millpond.store.sql import slots
from tests.proof_stores.machine import StoreMachine
from tests.proof_stores.worlds import STORES, Make, worlds

SHORT = {"memory": 3000, "sqlite": 2000, "postgres": 500, "redis": 500}
LONG = {"memory": 200_000, "sqlite": 200_000, "postgres": 20_000, "redis": 20_000}
STEPS = 50  # to an example
AT_ONCE = 500  # examples to a run: their record is kept in memory


def drive(make: Make, wanted: int) -> int:
    """Do at least that many steps; returns how many it were."""

    class Machine(StoreMachine):
        pass

    Machine.make = staticmethod(make)
    Machine.steps = [0]
    while (left := wanted - Machine.steps[0]) > 0:
        run_state_machine_as_test(
            Machine,
            settings=settings(
                max_examples=min(AT_ONCE, left // STEPS + 1),
                stateful_step_count=STEPS,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                report_multiple_bugs=False,
            ),
        )
    return Machine.steps[0]


@pytest.fixture(autouse=True)
def _remembered_slots(monkeypatch: pytest.MonkeyPatch) -> None:
    """A slot that no job used for an hour gets its size from the next job that claims it, which need not be
    the newest that waits. The model has no such hour (tests/stores/test_locks.py,
    test_slots_that_no_job_uses_are_forgotten_and_come_back)."""
    monkeypatch.setattr(slots, "KEPT", 10**18)


@pytest.mark.parametrize("name", STORES)
def test_a_store_and_the_model_agree(name: str, tmp_path: Path):
    with worlds(name, tmp_path) as make:
        assert drive(make, SHORT[name]) >= SHORT[name]


@pytest.mark.slow
@pytest.mark.parametrize("name", STORES)
def test_a_store_and_the_model_agree_for_very_long(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
):
    with worlds(name, tmp_path) as make:
        steps = drive(make, LONG[name])
    with capsys.disabled():
        print(f"\n{name}: {steps} steps, 0 disagreements")
