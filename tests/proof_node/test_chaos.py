"""Everything at once: every sort of job, of trouble and of user, on two to six nodes; then the books.

Slots, unique keys, dependencies, expiry, delays, retries, crashes, cancellations, replays, pauses and open
transactions, while workers, nodes and servers are killed, stopped and started. `MILLPOND_TEST_CHAOS` says for
how many seconds the long form does harm to each store (an hour), `MILLPOND_TEST_CHAOS_SEED` repeats the draws
of a run.
"""

from __future__ import annotations

import math
import os
import time
from pathlib import Path
from random import Random, randrange

import pytest

from tests.proof_node.crowd import Crowd
from tests.proof_node.fleet import STORES
from tests.proof_node.mill import Harm, end_all, mill_on
from tests.proof_node.verdict import problems

SHORT = 30.0  # seconds of harm
LONG = float(os.environ.get("MILLPOND_TEST_CHAOS", "3600"))
PACE = 1.5  # seconds between two deeds at most
STUCK = 60.0  # seconds after the last deed in which every job must have ended


@pytest.mark.timeout(LONG + 1800)
@pytest.mark.parametrize(
    "seconds", [SHORT, pytest.param(LONG, marks=pytest.mark.slow)], ids=["short", "long"]
)
@pytest.mark.parametrize("name", STORES)
def test_whatever_happens_no_job_is_lost_doubled_or_stuck_and_every_book_balances(
    name: str, seconds: float, tmp_path: Path
):
    seed = int(os.environ.get("MILLPOND_TEST_CHAOS_SEED") or randrange(2**32))
    draw = Random(seed)
    with mill_on(name, tmp_path, lease=5.0) as (mill, server):
        harm = Harm(mill, server, draw)
        mill.start(wait=False)
        mill.start()
        with Crowd(mill, seed) as crowd:
            until = time.monotonic() + seconds
            while time.monotonic() < until:
                harm.do_one()
                time.sleep(draw.uniform(0, PACE))  # the pace of the harm, not a wait for something
        harm.wake(math.inf)
        mill.drained(STUCK)
        end_all(mill)
        print(harm.told(), crowd.told())
        found = problems(mill, crowd.deeds)
        assert not found, f"MILLPOND_TEST_CHAOS_SEED={seed}\n" + "\n".join(
            f"{what}: {value}" for what, value in found.items()
        )
