"""`millpond migrate` and what `check` says of it: told first, printed for review, and done."""

from __future__ import annotations

import pytest

from tests.cli.conftest import URL
from tests.stores.schemas import make_older

OLD = "sqlite:///old.db"


@pytest.fixture
def older_file() -> None:
    """A store of the version before the first upgrade without a stop."""
    make_older(OLD)


def test_a_dry_run_says_what_would_be_done_and_changes_nothing(run, ask, older_file):
    said = run("migrate", "--dry-run", "--store", OLD).stdout
    assert "version 3 to 4, while everything runs" in " ".join(said.split())
    assert "locks: the lock of writers" in " ".join(said.split())
    document = ask("migrate", "--dry-run", "--store", OLD)
    assert (document["version"], document["known"]) == (3, 4)
    assert [(step["from"], step["to"], step["stop"]) for step in document["steps"]] == [(3, 4, False)]
    run("migrate", "--store", OLD)
    assert "there is nothing to do" in run("migrate", "--dry-run", "--store", OLD).stdout
    assert "would be created" in run("migrate", "--dry-run", "--store", "sqlite:///new.db").stdout


def test_the_statements_are_printed_from_the_stores_version_or_a_given_one(run, ask, older_file):
    said = run("migrate", "--sql", "--store", OLD).stdout
    assert "CREATE INDEX IF NOT EXISTS millpond_lapsing" in said
    assert "CREATE TABLE" not in said
    assert run("migrate", "--sql", "--from", "3", "--store", OLD).stdout == said
    assert ask("migrate", "--sql", "--store", OLD)["sql"] == said.rstrip("\n")
    postgres = run("migrate", "--sql", "--from", "3", "--store", "postgresql://nobody@localhost/x").stdout
    assert "CREATE INDEX CONCURRENTLY lapsing ON millpond.uniques" in postgres
    assert "ON_ERROR_STOP" in postgres


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--sql", "--dry-run"], "exclude each other"),
        (["--from", "3"], "add --sql"),
        (["--sql", "--from", "99"], "newer than the schema"),
    ],
)
def test_options_of_migrate_that_make_no_sense_are_refused(run, options, said):
    assert said in run("migrate", *options, "--store", URL, code=2).stderr


def test_there_is_nothing_to_contract_yet(run):
    run("migrate", "--store", URL)
    assert "nothing to contract" in run("migrate", "--contract", "--store", URL).stdout


def test_check_tells_the_version_and_which_code_it_is_for(run, older_file):
    said = " ".join(run("check", "--store", OLD, code=1).stdout.split())
    assert "version 3, version 4 is needed: run `millpond migrate` first" in said
    run("migrate", "--store", OLD)
    said = " ".join(run("check", "--store", OLD, code=1).stdout.split())  # there is no app
    assert "version 4, for code from 3 on; this code knows 4" in said
