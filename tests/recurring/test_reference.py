"""The reference of recurring tasks names what exists, all of it, and nothing else."""

from __future__ import annotations

import inspect

from millpond.orchestrator import events
from millpond.orchestrator.orchestrator import Orchestrator
from millpond.orchestrator.status import RecurringStatus, TickRecord
from millpond.recurring import RecurringKeywords
from tests.docs.pages import ROOT, code, rows, section

PAGE = ROOT / "docs" / "reference" / "recurring.md"


def test_every_option_has_its_row():
    named = [name for row in rows(section(PAGE, "## Options")) for name in code(row[0])]
    assert sorted(named) == sorted(RecurringKeywords.__annotations__)


def test_every_member_of_the_orchestrator_has_its_row():
    named = {
        name.split("(")[0] for row in rows(section(PAGE, "## `app.orchestrator`")) for name in code(row[0])
    }
    assert named == {name for name, _ in inspect.getmembers(Orchestrator) if not name.startswith("_")}


def test_every_field_is_named():
    assert set(RecurringStatus._fields) <= set(code(section(PAGE, "### RecurringStatus")))
    assert set(TickRecord._fields) <= set(code(section(PAGE, "### TickRecord")))


def test_every_event_has_its_row_with_its_fields():
    documented = {code(row[0])[0]: tuple(code(row[1])) for row in rows(section(PAGE, "## Events"))}
    real = {
        name: value._fields
        for name, value in vars(events).items()
        if inspect.isclass(value) and hasattr(value, "_fields")
    }
    assert documented == real
