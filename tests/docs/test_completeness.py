"""The documentation names what exists, all of it, and nothing else: links, options, errors, events, files."""

from __future__ import annotations

import ast
import inspect
import re
from pathlib import Path

import pytest

import millpond
from millpond import Pool, errors, events
from millpond import options as job_options
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
from millpond.testing import Testing
from tests.docs.pages import GENERATED, PAGES, ROOT, anchors, code, links, rows, section, title

REFERENCE = ROOT / "docs" / "reference" / "pool.md"
JOBS = ROOT / "docs" / "reference" / "jobs.md"
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


ERRORS = {
    name
    for name, value in vars(errors).items()
    if inspect.isclass(value) and issubclass(value, errors.MillpondError)
}


def tree(text: str) -> list[str]:
    """The lines of a drawn tree, as they stand."""
    return [line for line in text.splitlines() if re.match(r"[│ ]*[├└]──", line)]


def test_the_drawn_tree_of_errors_is_the_real_one() -> None:
    drawn = {}
    above: list[str] = ["MillpondError"]
    for line in tree(errors.__doc__ or ""):
        name, others = re.match(r"[│├└─ ]*(\w+)(?: \((\w+)\))?", line).groups()  # type: ignore[union-attr]
        depth = line.index("──") // 4 + 1
        above[depth:] = [name]
        drawn[name] = {above[depth - 1], *([others] if others else [])}
    real = {name: {base.__name__ for base in getattr(errors, name).__bases__} for name in ERRORS}
    assert drawn == {name: bases for name, bases in real.items() if name != "MillpondError"}


def test_every_error_is_in_a_tree_of_the_reference() -> None:
    shown = tree(section(REFERENCE, "## Errors")) + tree(section(JOBS, "## Errors"))
    roots = {"JobError", "StoreError", "PoolError"}
    wanted = [line for line in tree(errors.__doc__ or "") if not roots & set(line.split())]
    assert len(wanted) == len(ERRORS) - len({*roots, "MillpondError"})
    assert not [line for line in wanted if line not in shown]


def test_every_public_name_is_in_the_reference() -> None:
    assert set(millpond.__all__) >= ERRORS
    text = REFERENCE.read_text(encoding="utf-8") + JOBS.read_text(encoding="utf-8")
    missing = [name for name in millpond.__all__ if not re.search(rf"\b{name}\b", text)]
    assert not missing


# --- jobs ------------------------------------------------------------------------------------------------
def jobs_cells(heading: str) -> list[str]:
    return [name for row in rows(section(JOBS, heading)) for name in code(row[0])]


def test_every_option_of_a_task_and_of_a_job_has_its_row() -> None:
    assert sorted(jobs_cells("## Options of a task")) == sorted(job_options.TaskKeywords.__annotations__)
    assert sorted(jobs_cells("## Options of a job")) == sorted(job_options.UsingKeywords.__annotations__)


def test_the_defaults_of_a_task_are_the_real_ones() -> None:
    task = millpond.App("memory://").task(name="plain")(lambda: None)
    real = {"key": None, "limit": None} | {
        name: getattr(task, name) for name in ("queue", "priority", "timeout", "expires")
    }
    for row in rows(section(JOBS, "## Options of a task")):
        name = code(row[0])[0]
        if name in real:
            assert ast.literal_eval(code(row[2])[0]) == real[name], name


def test_every_field_of_retry_has_its_row_with_its_default() -> None:
    documented = {
        code(row[0])[0]: ast.literal_eval(code(row[1])[0]) for row in rows(section(JOBS, "## Retry"))
    }
    assert documented == {name: getattr(millpond.Retry(), name) for name in millpond.Retry.__struct_fields__}


@pytest.mark.parametrize(
    ("heading", "kind"),
    [
        ("## App", millpond.App),
        ("## Task", millpond.Task),
        ("## Handles", millpond.JobHandle),
        ("## Testing", Testing),
    ],
)
def test_every_method_of_the_jobs_has_its_row(heading: str, kind: type) -> None:
    named = {name.split("(")[0] for name in jobs_cells(heading)}
    public = {name for name, _ in inspect.getmembers(kind) if not name.startswith("_")}
    assert named == public


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
