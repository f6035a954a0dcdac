"""Schemas: made once however many make them, and refused when they are of another version."""

from __future__ import annotations

import threading

import pytest

from millpond.errors import SchemaOutdated, StoreRefused, StoreUnavailable
from millpond.store.open import open_store
from millpond.store.protocol import Filter
from tests.stores.acting import new_job, put, tally
from tests.stores.schemas import set_version


def test_a_new_store_is_made_once(url):
    store = open_store(url)
    assert len(store.migrate()) == 1
    assert store.migrate() == []
    again = open_store(url)
    assert again.migrate() == []
    for handle in (store, again):
        handle.close()


def test_memory_is_made_once():
    store = open_store("memory://")
    assert len(store.migrate()) == 1
    assert store.migrate() == []
    store.close()


def test_migrating_keeps_what_there_is(store):
    put(store, new_job())
    assert store.migrate() == []
    assert tally(store) == {"queued": 1}


def test_many_may_migrate_at_once(url):
    together = threading.Barrier(6)
    answers: list[list[str]] = []
    errors: list[Exception] = []

    def migrate() -> None:
        store = open_store(url)
        together.wait()
        try:
            answers.append(store.migrate())
        except Exception as error:
            errors.append(error)
        store.close()

    threads = [threading.Thread(target=migrate) for _ in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert errors == []
    assert sorted(map(len, answers)) == [0, 0, 0, 0, 0, 1]


def test_a_store_can_be_closed_and_used_again(url, open_at):
    store = open_at(url)
    put(store, new_job())
    store.close()
    store.close()
    assert tally(store) == {"queued": 1}


@pytest.mark.parametrize("version", [0, 99])
def test_another_version_is_refused_by_every_verb_every_time(url, open_at, version):
    open_at(url).close()
    set_version(url, version)
    store = open_store(url)
    for call in (
        lambda: store.enqueue([new_job()]),
        lambda: store.enqueue([new_job(fresh=True)]),
        store.counts,
        lambda: store.search(Filter()),
        lambda: store.renew("n1", "here"),
    ) * 2:
        with pytest.raises(SchemaOutdated, match=r"version.*millpond migrate|newer Millpond"):
            call()
    store.close()


def test_a_newer_version_is_not_migrated_backwards(url, open_at):
    open_at(url).close()
    set_version(url, 99)
    store = open_store(url)
    with pytest.raises(SchemaOutdated, match="newer Millpond"):
        store.migrate()
    store.close()


def test_tables_that_were_never_made_are_missed(postgres_url):
    store = open_store(postgres_url)
    with pytest.raises(SchemaOutdated, match="millpond migrate"):
        store.counts()
    store.close()


def test_a_file_that_is_no_database_is_refused_and_left_alone(sqlite_path):
    sqlite_path.write_bytes(b"a letter to my grandmother, " * 100)
    before = sqlite_path.read_bytes()
    store = open_store(f"sqlite:///{sqlite_path}")
    with pytest.raises(StoreRefused, match="not a database"):
        store.enqueue([new_job()])
    assert sqlite_path.read_bytes() == before


def test_a_folder_that_does_not_exist_is_named(tmp_path):
    store = open_store(f"sqlite:///{tmp_path}/nowhere/jobs.db")
    with pytest.raises(StoreUnavailable, match="nowhere"):
        store.enqueue([new_job()])


def test_a_new_file_is_for_its_owner_only(sqlite_path):
    store = open_store(f"sqlite:///{sqlite_path}")
    store.migrate()
    assert sqlite_path.stat().st_mode & 0o077 == 0
    store.close()


def test_no_password_is_shown(postgres_url):
    store = open_store(postgres_url.replace("postgres@", "postgres:secret@"))
    assert "secret" not in store.url
    store.migrate()
    assert "secret" not in str(store.durability())
    store.close()


def test_a_server_that_is_not_there_is_unavailable():
    from tests.servers.process import free_port

    store = open_store(f"postgresql://postgres:secret@127.0.0.1:{free_port()}/postgres")
    with pytest.raises(StoreUnavailable) as caught:
        store.enqueue([new_job()])
    assert "secret" not in str(caught.value)


def test_durability_is_told(store):
    assert store.durability().startswith(("durable", "survives", "usually survives", "not durable"))
