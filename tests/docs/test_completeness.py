"""The documentation names what exists, all of it, and nothing else: links, options, errors, events, files."""

from __future__ import annotations

import ast
import inspect
from pathlib import Path

import pytest

import millpond
from millpond import Pool, errors, events
from millpond.pool.options import (
    PREFIX,
    REFUSED,
    VARIABLES,
    PoolKeywords,
    PoolOptions,
    TaskKeywords,
    TaskOptions,
)
from millpond.pool.statistics import Durations, Health, PoolStatistics, WorkerRow
from tests.docs.pages import GENERATED, PAGES, ROOT, anchors, code, links, rows, section, title

REFERENCE = ROOT / "docs" / "reference" / "pool.md"
POSITIONAL = {"max_workers", "mp_context", "initializer", "initargs"}
COMPUTED = {"max_workers", "min_workers", "concurrency"}  # their defaults depend on machine and kind


def first_cells(heading: str) -> list[str]:
    """What the first column under a heading of the reference names."""
    return [name for row in rows(section(REFERENCE, heading)) for name in code(row[0])]


def fields(record: type) -> set[str]:
    return set(record._fields)  # type: ignore[attr-defined]


# --- links ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("page", PAGES, ids=title)
def test_every_link_leads_somewhere(page: Path) -> None:
    for target, anchor in links(page):
        if target in GENERATED and not target.exists():
            continue
        assert target.exists(), f"{title(page)} links to {target}"
        assert not anchor or anchor in anchors(target), f"{title(page)} links to {target.name}#{anchor}"


def test_every_page_can_be_reached_from_the_readme() -> None:
    reached, waiting = set(), {ROOT / "README.md"}
    while waiting:
        page = waiting.pop()
        reached.add(page)
        found = {target for target, _ in links(page) if target.suffix == ".md" and target.exists()}
        waiting |= found - reached
    assert not set(PAGES) - reached - {ROOT / "docs" / "README.md"}


# --- options -------------------------------------------------------------------------------------------
def test_every_option_has_its_row() -> None:
    names = first_cells("## Options")
    assert sorted(names) == sorted(POSITIONAL | set(PoolKeywords.__annotations__))


def test_the_defaults_are_the_real_ones() -> None:
    real = {
        name: default
        for record in (TaskOptions, PoolOptions)
        for name, default in record._field_defaults.items()
    }
    for row in rows(section(REFERENCE, "## Options")):
        name = code(row[0])[0]
        if name not in COMPUTED:
            assert ast.literal_eval(code(row[2])[0]) == real[name], name


def test_the_kinds_are_the_real_ones() -> None:
    for row in rows(section(REFERENCE, "## Options")):
        name = code(row[0])[0]
        kinds = "async" if name == "concurrency" else "process, async" if name in REFUSED["thread"] else "all"
        assert row[3] == kinds, name


def test_the_options_of_a_task_are_named() -> None:
    named = code(section(REFERENCE, "### Options of a task"))
    assert set(TaskKeywords.__annotations__) <= set(named)


def test_the_table_of_variables_is_complete() -> None:
    documented = [
        (code(row[0])[0], code(row[1])[0]) for row in rows(section(REFERENCE, "## Environment variables"))
    ]
    assert sorted(documented) == sorted((PREFIX + name, option) for name, (option, _) in VARIABLES.items())


# --- the rest of the interface ---------------------------------------------------------------------------
def test_every_method_has_its_row() -> None:
    named = {name.split("(")[0] for name in first_cells("## Methods")}
    public = {name for name, _ in inspect.getmembers(Pool, callable) if not name.startswith("_")}
    assert {name for name in named if name in public} == public


def test_every_error_is_in_the_tree() -> None:
    tree = section(REFERENCE, "## Errors")
    real = {
        name
        for name, value in vars(errors).items()
        if inspect.isclass(value) and issubclass(value, errors.MillpondError)
    }
    assert all(f"{name} " in tree or f"{name}\n" in tree for name in real)
    assert real == set(millpond.__all__) - {"Pool"}


def test_every_fact_of_a_death_has_its_row() -> None:
    assert set(first_cells("## Errors")) == fields(errors.Death)


def test_every_event_has_its_row_with_its_fields() -> None:
    documented = {code(row[0])[0]: set(code(row[1])) for row in rows(section(REFERENCE, "## Events"))}
    real = {
        name: fields(value)
        for name, value in vars(events).items()
        if inspect.isclass(value) and hasattr(value, "_fields")
    }
    assert documented == real


def test_every_statistic_is_described() -> None:
    assert set(first_cells("## Statistics")) == fields(PoolStatistics)
    text = section(REFERENCE, "## Statistics")
    for record in (Durations, WorkerRow, Health):
        described = next(line for line in text.split("\n\n") if line.startswith(f"`{record.__name__}`"))
        assert fields(record) <= set(code(described))


# --- the code --------------------------------------------------------------------------------------------
def test_the_internals_name_every_source_file_once() -> None:
    source = ROOT / "src" / "millpond"
    text = (ROOT / "docs" / "internals.md").read_text(encoding="utf-8")
    files = {str(path.relative_to(source)) for path in source.rglob("*.py")}
    assert {name: text.count(f"**`{name}`**") for name in files} == dict.fromkeys(files, 1)


def test_every_decision_is_listed() -> None:
    folder = ROOT / "docs" / "adr"
    listed = {target.name for target, _ in links(folder / "README.md")}
    assert listed == {path.name for path in folder.glob("0*.md")}
    for path in folder.glob("0*.md"):
        assert [line for line in path.read_text(encoding="utf-8").splitlines() if line.startswith("## ")] == [
            "## Context",
            "## Decision",
            "## Consequences",
        ]


def test_the_glossary_is_in_order() -> None:
    words = [row[0] for row in rows((ROOT / "docs" / "glossary.md").read_text(encoding="utf-8"))]
    assert words == sorted(words)
