"""Schemas that are upgraded while everything runs: code of two versions on one store, and who is refused."""

from __future__ import annotations

import logging
import shutil
import subprocess
import sys
import threading
from typing import Any, cast

import apsw
import psycopg
import pytest

from millpond.errors import SchemaOutdated, StoreError, StoreRefused
from millpond.rules.store.schema import Change, Schema, Step
from millpond.store import versions
from millpond.store.open import open_store
from millpond.store.postgres import schema as postgres_schema
from millpond.store.postgres import upgrade as postgres_upgrade
from millpond.store.redis import schema as redis_schema
from millpond.store.sqlite import schema as sqlite_schema
from tests.servers import postgres
from tests.servers.redis import client_for
from tests.stores.acting import Node, new_job, put, put_many, state, tally
from tests.stores.places import SHARED, address_and_name, place
from tests.stores.schemas import (
    after,
    before,
    catalog,
    make_older,
    older,
    set_version,
    sort_of,
)

LEAST = {"postgres": 20, "sqlite": 10, "redis": 4}  # statements: fewer would mean that the trap is not there


@pytest.fixture
def code():
    """Open a store as this code does, or as code of the version before; closed when the test ends."""
    made: list[Any] = []

    def open_one(url: str, *, is_older: bool = False) -> Any:
        made.append(older(url) if is_older else open_store(url))
        return made[-1]

    yield open_one
    for store in made:
        store.close()


@pytest.fixture
def old(url, code):
    """A store of the version before, as code of that version has it open."""
    make_older(url)
    return code(url, is_older=True)


def test_code_of_the_version_before_goes_on_when_the_schema_is_upgraded(url, old, open_at):
    node = Node(old)
    first = put_many(old, 3)
    node.settle(node.claim_one())
    new = open_at(url)
    second = put(new, new_job(unique="k"), new_job(delay=0.0))
    third = put_many(old, 2)
    node.renew()
    newer = Node(new, "n2")
    newer.settle(*newer.claim(3))
    node.settle(*node.claim())
    assert tally(old) == tally(new) == {"completed": len(first + second + third)}


def test_code_is_refused_by_a_schema_that_was_not_upgraded_yet(url, old, code):
    put(old, new_job())
    store = code(url)
    for call in (store.counts, lambda: store.enqueue([new_job()]), lambda: store.renew("n1", "here")):
        with pytest.raises(SchemaOutdated, match=f"version {before(url)}, .*run `millpond migrate` first"):
            call()


def test_an_upgraded_schema_is_the_same_as_a_new_one(url, old, tmp_path, open_at):
    put(old, new_job())
    with open_at(url).upgrade() as upgrade:
        assert upgrade.found() == Schema(after(url), before(url))
    (tmp_path / "new").mkdir()
    with place(sort_of(url), tmp_path / "new") as other:
        open_at(other)
        assert catalog(other) == catalog(url)


def test_a_node_hears_of_an_upgrade_with_its_next_renewal_and_goes_on(url, old, open_at, caplog):
    node = Node(old)
    with caplog.at_level(logging.INFO, "millpond"):
        open_at(url)
        node.renew()
        node.renew()
    (said,) = [line for line in caplog.messages if "goes on" in line]
    assert f"has schema {after(url)} now; this process knows {before(url)}" in said
    assert (old.versions.seen, old.versions.trouble) == (Schema(after(url), before(url)), None)


def test_after_a_contraction_a_renewal_tells_what_is_wrong_and_ends_are_still_taken(url, old, caplog):
    node = Node(old)
    (job,) = put(old, new_job())
    claimed = node.claim_one()
    set_version(url, 99)
    node.renew()
    assert "takes code from version 99 on" in old.versions.trouble
    assert [record.levelname for record in caplog.records] == ["ERROR"]
    node.settle(claimed)
    assert state(old, job) == "completed"
    with pytest.raises(SchemaOutdated, match="newer Millpond"):
        old.enqueue([new_job()])


def test_a_program_that_enqueues_asks_again_after_a_while(url, old, monkeypatch):
    put(old, new_job())
    set_version(url, 99)
    put(old, new_job())  # not with every call
    monkeypatch.setattr(versions, "EVERY", 0.0)
    for jobs in ([new_job()], [new_job(unique="k")]):
        with pytest.raises(SchemaOutdated, match="newer Millpond"):
            old.enqueue(jobs)
    set_version(url, after(url), before(url))
    put(old, new_job())  # and is heard again when that is mended


@pytest.mark.parametrize("url", ["sqlite", "postgres"], indirect=True)
def test_a_table_that_is_missing_is_told_as_the_newer_version_it_is(url, old):
    put(old, new_job())
    change(url, "ALTER TABLE {}documents RENAME TO papers")
    with pytest.raises(StoreError, match="documents"):
        old.record("x")
    set_version(url, 99)
    for call in (lambda: old.record("x"), lambda: old.enqueue([new_job()])):
        with pytest.raises(SchemaOutdated, match="newer Millpond"):
            call()


@pytest.mark.parametrize("url", ["postgres"], indirect=True)
async def test_so_it_is_told_inside_a_transaction_of_the_caller(url, old):
    address, _ = address_and_name(url)
    put(old, new_job())
    change(url, "ALTER TABLE {}minutes RENAME TO hours")
    set_version(url, 99)
    with psycopg.connect(address) as caller, pytest.raises(SchemaOutdated, match="newer Millpond"):
        old.enqueue([new_job()], transaction=caller)
    async with await psycopg.AsyncConnection.connect(address) as caller:
        with pytest.raises(SchemaOutdated, match="newer Millpond"):
            await old.aenqueue([new_job()], caller)


def change(url: str, text: str) -> None:
    """Change tables by hand."""
    if url.startswith("sqlite"):
        connection = apsw.Connection(url.removeprefix("sqlite:///"))
        connection.set_busy_timeout(5000)
        connection.execute(text.format("millpond_"))
        connection.close()
        return
    address, schema = address_and_name(url)
    with psycopg.connect(address, autocommit=True) as server:
        server.execute(text.format(f"{schema}.").encode())


@pytest.mark.parametrize("url", [*SHARED, "pgbouncer"], indirect=True)
def test_many_may_upgrade_at_once(url, old, code):
    """Also through a pooler that has fewer connections than there are migrations."""
    together = threading.Barrier(4)
    answers: list[list[str]] = []

    def migrate() -> None:
        store = open_store(url)
        together.wait()
        answers.append(store.migrate())
        store.close()

    threads = [threading.Thread(target=migrate) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 4
    assert sum(map(len, answers)) >= 1  # on SQLite several may have done a part of it
    assert code(url).migrate() == []


# --- who is refused -------------------------------------------------------------------------------------
def test_a_step_that_needs_a_stop_is_refused_while_a_node_of_older_code_lives(
    url, open_at, code, monkeypatch
):
    """From version 2 to 3 of the SQL stores, and a step like it on Redis."""
    store = open_at(url)
    node = Node(store)
    set_version(url, 2 if sort_of(url) != "redis" else 0)
    step = Step(0, 1, 1, (Change("version"),), stops=True)
    monkeypatch.setitem(redis_schema.STEPS, 0, step)
    with pytest.raises(StoreRefused, match=f"not changed.* stop them first: {node.name}"):
        code(url).migrate()
    with pytest.raises(SchemaOutdated, match="millpond migrate"):
        code(url).renew("n2", "here")


@pytest.fixture
def contraction(monkeypatch):
    """A contraction of the latest version, as a later one may have it."""
    for module in (postgres_schema, sqlite_schema, redis_schema):
        number = module.SCHEMA
        say = {
            postgres_schema: "UPDATE {schema}.meta SET compatible_from = 4",
            sqlite_schema: "UPDATE millpond_meta SET compatible_from = 4",
            redis_schema: "forget_old_slots",
        }[module]
        step = Step(number, number, number, (Change(say),))
        monkeypatch.setitem(module.CONTRACTIONS, number, step)


def test_there_is_nothing_to_contract_yet(url, open_at):
    with open_at(url).upgrade() as upgrade:
        assert upgrade.contract() == []


def test_a_contraction_is_refused_while_a_node_needs_the_older_schema(url, old, open_at, code, contraction):
    node = Node(old)
    new = open_at(url)
    with pytest.raises(StoreRefused, match=f"contract version {after(url)}.* stop them first: {node.name}"):
        contract(new)
    new.renew("n2", "here", b'{"schema": %d}' % after(url))
    old.renew(node.name, node.host, lease=0)
    (done,) = contract(new)
    assert done.endswith(f"takes code from version {after(url)} on")
    assert contract(new) == []
    put(new, new_job())
    with pytest.raises(SchemaOutdated, match="newer Millpond"):
        code(url, is_older=True).enqueue([new_job()])


def contract(store: Any) -> list[str]:
    with store.upgrade() as upgrade:
        done: list[str] = upgrade.contract()
        return done


# --- PostgreSQL -----------------------------------------------------------------------------------------
def test_an_open_transaction_delays_the_migration_and_nothing_else(postgres_url, code, monkeypatch, caplog):
    """A user's transaction that has enqueued holds the table of jobs; nothing else waits for it, nor for
    the migration that does."""
    monkeypatch.setattr(postgres_upgrade, "QUIET", 0.0)
    monkeypatch.setattr(postgres_upgrade, "PAUSE", 0.05)
    make_older(postgres_url)
    store = code(postgres_url, is_older=True)
    address, _ = address_and_name(postgres_url)
    done: list[list[str]] = []
    with psycopg.connect(address) as user:
        store.enqueue([new_job()], transaction=user)
        migration = threading.Thread(target=lambda: done.append(code(postgres_url).migrate()))
        migration.start()
        node = Node(store)
        while sum("open for" in line for line in caplog.messages) < 10:  # it tries again and again
            put(store, new_job())
            node.run()
            node.renew()
        assert (done, migration.is_alive()) == ([], True)
        user.commit()
    migration.join()
    assert ["version 3 to 4" in line for line in done[0]] == [True]
    assert tally(store)["queued"] == 1


def test_an_index_that_was_broken_off_is_built_anew(postgres_url, open_at):
    make_older(postgres_url)
    address, schema = address_and_name(postgres_url)
    with psycopg.connect(address, autocommit=True) as server:
        server.execute(f"INSERT INTO {schema}.ticks VALUES ('r', 1, NULL, 1), ('r', 2, NULL, 1)".encode())
        with pytest.raises(psycopg.errors.UniqueViolation):
            server.execute(
                f"CREATE UNIQUE INDEX CONCURRENTLY planned ON {schema}.ticks (planned_at)".encode()
            )
    assert ("planned", False) in [row[:2] for row in catalog(postgres_url)["indexes"]]
    open_at(postgres_url)
    assert ("planned", True) in [row[:2] for row in catalog(postgres_url)["indexes"]]


def test_rows_that_no_code_of_ours_wrote_are_named_and_the_older_schema_stays(postgres_url, code):
    make_older(postgres_url)
    store = code(postgres_url, is_older=True)
    (job,) = put(store, new_job())
    change(postgres_url, "UPDATE {}jobs SET attempt = -1")
    with pytest.raises(StoreError, match=r"jobs_counters.*migrate again"):
        code(postgres_url).migrate()
    put(store, new_job())
    change(postgres_url, "UPDATE {}jobs SET attempt = 0")
    assert len(code(postgres_url).migrate()) == 1
    assert state(store, job) == "queued"


# --- Redis ----------------------------------------------------------------------------------------------
def test_slots_that_old_versions_left_go_with_the_upgrade(redis_url, open_at, monkeypatch):
    monkeypatch.setattr(redis_schema, "PAGE", 10)
    make_older(redis_url)
    _, namespace = address_and_name(redis_url)
    with client_for(redis_url) as client:
        client.hset(f"{{{namespace}}}:slots:capacity", mapping={f"key-{n}": 1 for n in range(2000)})
        client.hset(f"{{{namespace}}}:slots:used", "key-7", 1)
        open_at(redis_url)
        assert client.hgetall(f"{{{namespace}}}:slots:capacity") == {b"key-7": b"1"}


# --- reviewed, and done by hand -------------------------------------------------------------------------
@pytest.mark.parametrize("since", [3, None])
def test_the_printed_statements_make_the_same_schema(postgres_url, tmp_path, open_at, since):
    if since is not None:
        make_older(postgres_url)
    address, _ = address_and_name(postgres_url)
    script = tmp_path / "migrate.sql"
    script.write_text(cast("Any", open_store(postgres_url)).script(since))
    psql = shutil.which("psql") or postgres.programs() / "psql"
    for _ in range(2 if since else 1):  # what stopped half-way is repeated
        subprocess.run([psql, "-X", "-q", "-f", script, address], check=True, capture_output=True)
    with place("postgres", tmp_path) as other:
        open_at(other)
        assert catalog(postgres_url) == catalog(other)
    put(open_at(postgres_url), new_job())


def test_the_statements_for_a_file_make_the_same_schema(tmp_path, open_at):
    url, other = f"sqlite:///{tmp_path}/old.db", f"sqlite:///{tmp_path}/new.db"
    make_older(url)
    connection = apsw.Connection(f"{tmp_path}/old.db")
    connection.execute(sqlite_schema.script(3))
    connection.close()
    open_at(other)
    assert catalog(url) == catalog(other)


def test_what_is_pending_is_told_and_nothing_is_changed(url, old, code):
    found = catalog(url)
    with code(url).upgrade() as upgrade:
        (step,) = upgrade.pending()
        assert (step.before, step.after, step.stops) == (before(url), after(url), False)
        assert all(change.locks for change in step.changes)
    assert catalog(url) == found


# --- killed ---------------------------------------------------------------------------------------------
@pytest.mark.parametrize("stride", [7, pytest.param(1, marks=pytest.mark.slow)])
def test_a_migration_that_was_killed_anywhere_is_repeated(url, stride):
    """A child dies before each statement in turn; the next migration ends with the same schema."""
    done = subprocess.run(
        [sys.executable, "-m", "tests.stores.killed", f"{url}{{n}}", str(stride)],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > LEAST[sort_of(url)]
