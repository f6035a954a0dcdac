"""Why a recurring task runs or does not: one sentence for each thing that can stand in its way."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from millpond.job import MICROSECONDS, Slot
from millpond.rules.recurring.breaker import Breaker
from millpond.rules.recurring.continuous import Restart
from millpond.rules.recurring.correction import Dispute
from millpond.rules.recurring.dependencies import Verdict
from millpond.rules.recurring.explain import Facts, why_recurring

S = MICROSECONDS
NOW = 100_000 * S
NO_NODE = "No node is running, so nothing plans its ticks: start one with `millpond run`."
BROKEN = Breaker(failures=5, opened_at=NOW)
ENABLE = "`millpond recurring enable sync`"

SENTENCES: dict[str, dict[str, Any]] = {
    "It is due in 1 min.": {"next_due_at": NOW + 90 * S},
    "It is due now.": {"next_due_at": NOW - 1},
    "Its cadence names no further instant.": {"next_due_at": None},
    "It waits to be triggered: `millpond recurring trigger sync` does.": {"kind": "triggered"},
    "It has been running for 3.0 s.": {"running_since": NOW - 3 * S},
    "Its tick was let go 2.0 s ago and waits in line for a worker.": {"enqueued_at": NOW - 2 * S},
    "Its tick waits: 'tidy' runs, which must not run beside it.": {
        "enqueued_at": NOW - 2 * S,
        "parked": Slot("blocks:sync|tidy"),
    },
    "Its tick waits: 'backup' runs, which must not run beside it.": {
        "enqueued_at": NOW - 2 * S,
        "parked": Slot("blocks:backup|sync"),
    },
    "Its tick waits: slot 'warehouse' has no room, 2 of 2 held by 'a', 'b'.": {
        "enqueued_at": NOW - 2 * S,
        "parked": Slot("slot:warehouse", 2),
        "holders": ("a", "b"),
    },
    "Its tick waits: slot 'warehouse' has no room, 2 of 2 held by others.": {
        "enqueued_at": NOW - 2 * S,
        "parked": Slot("slot:warehouse", 2),
    },
    "Its tick waits: max_concurrent is 3, and as many ticks run.": {
        "enqueued_at": NOW - 2 * S,
        "parked": Slot("recurring:*", 3),
    },
    "Its tick waits: an earlier run of it has not ended.": {
        "enqueued_at": NOW - 2 * S,
        "parked": Slot("recurring:sync"),
    },
    "Its tick waits: 'fetch' is running.": {"verdict": Verdict("wait", "'fetch' is running", "fetch")},
    "Its tick waits: it must not run beside 'tidy', whose turn it is.": {"behind": "tidy"},
    NO_NODE: {"nodes": 0, "enqueued_at": NOW},
    "It is no longer in the code: it is retired, and its history is kept.": {"retired": True},
    f"It is disabled in the code, by enabled=False; {ENABLE} lets it run.": {
        "breaker": Breaker(disabled_at=NOW, disabled_by="its code")
    },
    f"It was disabled by ada 1 h 0 min ago; {ENABLE} lets it run again.": {
        "breaker": Breaker(disabled_at=NOW - 3600 * S, disabled_by="ada")
    },
    "Its breaker is open: 5 ticks in a row failed (OSError); mend the cause, then "
    f"{ENABLE} lets it run again.": {"breaker": replace(BROKEN, error="OSError")},
    f"Its breaker is open: 5 ticks in a row failed; it is probed in 30.0 s, or sooner with {ENABLE}.": {
        "breaker": replace(BROKEN, probe_at=NOW + 30 * S)
    },
    "Its breaker is half-open after 5 ticks in a row failed; its next tick is a probe.": {
        "breaker": replace(BROKEN, probe_at=NOW)
    },
    "Its breaker is half-open after 5 ticks in a row failed; a probe is under way to see whether it "
    "works again.": {"breaker": replace(BROKEN, probe_at=NOW, probing=NOW)},
    "It ended and is started again in 4.0 s.": {
        "kind": "continuous",
        "restart": Restart(NOW + 4 * S, "back-off"),
    },
    "It ended and is started again in 1 min; it reached its start limit.": {
        "kind": "continuous",
        "restart": Restart(NOW + 60 * S, "start limit"),
    },
    "Its last tick lies 216 h 0 min ahead of the store's clock, which must have been wrong: a node that "
    "plans goes on by what it shows now.": {
        "cursor": NOW + 9 * 86_400 * S,
        "next_due_at": NOW + 10 * 86_400 * S,
    },
    "It is due in 5.0 s, unless that instant has had its run: the store's clock was 2 h 0 min ahead of what "
    "it is now.": {
        "next_due_at": NOW + 5 * S,
        "dispute": Dispute(NOW - 60 * S, NOW - 60 * S + 7200 * S),
    },
    "It is due in 6.0 s.": {
        "next_due_at": NOW + 6 * S,
        "dispute": Dispute(NOW - 7200 * S, NOW - 60 * S),
    },
    "It was disabled by anna 1 min ago, and has been running for 4.0 s: this run was triggered, or began "
    "before.": {
        "breaker": Breaker(disabled_at=NOW - 60 * S, disabled_by="anna"),
        "running_since": NOW - 4 * S,
    },
}


@pytest.mark.parametrize("sentence", SENTENCES)
def test_what_stands_in_its_way_is_said_in_one_sentence(sentence):
    assert why_recurring(Facts("sync", **SENTENCES[sentence]), NOW) == sentence


def test_what_a_person_decided_is_said_first():
    both = Breaker(failures=5, opened_at=NOW, disabled_at=NOW - S)
    running = Facts("sync", breaker=both, running_since=NOW - S, next_due_at=NOW)
    assert why_recurring(running, NOW).startswith("It was disabled by hand 1.0 s ago")
