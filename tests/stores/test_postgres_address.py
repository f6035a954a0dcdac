"""URLs of PostgreSQL: one host, several, none; what is shown of them, and what is refused."""

from __future__ import annotations

import pytest

from millpond.errors import OptionError
from millpond.store.open import open_store
from millpond.store.postgres.url import PostgresAddress
from tests.servers.postgres import Postgres
from tests.servers.process import free_port
from tests.stores.acting import new_job, opened, put, tally


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("postgresql://u:pw@h/db", "postgresql://h/db"),
        ("postgres://u:pw@h:5433/db?schema=shop", "postgresql://h:5433/db?schema=shop"),
        ("postgresql://u:pw@h1:5432,h2:5433/db", "postgresql://h1:5432,h2:5433/db"),
        ("postgresql://u:pw@h1,h2/db?sslmode=require", "postgresql://h1,h2/db"),
        ("postgresql://u@/db?host=a,b&port=1,2&password=pw", "postgresql://a:1,b:2/db"),
        ("postgresql://u@/db?host=a,b&port=7", "postgresql://a:7,b:7/db"),
        ("postgresql:///db?host=/run/postgresql", "postgresql:///db?host=/run/postgresql"),
        (
            "postgresql:///db?host=/run/postgresql&port=5433&schema=shop",
            "postgresql:///db?host=/run/postgresql&port=5433&schema=shop",
        ),
        ("postgresql://%2Frun%2Fpostgresql/db", "postgresql:///db?host=/run/postgresql"),
        ("postgresql://[::1]:5432,[::2]:5433/db", "postgresql://[::1]:5432,[::2]:5433/db"),
        ("postgresql://u@/db?hostaddr=10.0.0.1&port=5432", "postgresql://10.0.0.1:5432/db"),
        ("postgresql://h/a%20b", "postgresql://h/a%20b"),
        ("postgresql:///?service=shop", "postgresql:///?service=shop"),
    ],
)
def test_the_servers_that_are_meant_are_shown_and_no_password(url, shown, monkeypatch):
    for name in ("PGHOST", "PGPORT", "PGHOSTADDR"):
        monkeypatch.delenv(name, raising=False)
    assert open_store(url).url == shown


def test_a_url_without_any_host_is_local_or_the_host_of_the_environment(monkeypatch):
    monkeypatch.delenv("PGHOST", raising=False)
    assert open_store("postgresql:///db").url == "postgresql://local/db"
    monkeypatch.setenv("PGHOST", "elsewhere")
    assert open_store("postgresql:///db").url == "postgresql://elsewhere/db"


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://h1:x,h2:5432/db",
        "postgresql://h1:1,h2:99999/db",
        "postgresql:///db?host=a,b,c&port=1,2",
        "postgresql://u:pw@h/db?no_such_option=1",
        "postgresql://u:pw%zz@h/db",
        "postgresql://u:pw@h/db?listen=postgresql%3A%2F%2Fu%3Apw%40h%3Ax%2Fdb",
    ],
)
def test_what_no_driver_could_use_is_refused_at_once_and_without_the_password(url):
    with pytest.raises(OptionError) as refused:
        open_store(url)
    assert "pw" not in str(refused.value)


def test_what_is_not_ours_reaches_the_driver_as_it_was_written():
    address = PostgresAddress("postgresql://h/db?options=-c%20geqo%3Doff&schema=s&application_name=a+b")
    assert address.parameters["options"] == "-c geqo=off"
    assert address.parameters["application_name"] == "a+b"
    assert "schema" not in address.parameters


def test_of_several_hosts_one_that_takes_writes_is_wanted_unless_the_url_has_a_wish(monkeypatch):
    monkeypatch.delenv("PGTARGETSESSIONATTRS", raising=False)
    wish = "target_session_attrs"
    assert PostgresAddress("postgresql://a,b/db").parameters[wish] == "read-write"
    assert PostgresAddress(f"postgresql://a,b/db?{wish}=any").parameters[wish] == "any"
    assert wish not in PostgresAddress("postgresql://a/db").parameters


def test_jobs_are_stored_by_a_url_with_several_hosts_and_by_one_without_any():
    server = Postgres(fast=True, settings={"unix_socket_directories": "."})
    port, folder = server.server.port, server.server.folder / "data"
    for url in (
        f"postgresql://postgres@127.0.0.1:{free_port()},127.0.0.1:{port}/postgres",
        f"postgresql:///postgres?host={folder}&port={port}&user=postgres",
    ):
        store = opened(url)
        put(store, new_job(), new_job(delay=1.0))
        store.close()
    assert tally(store) == {"queued": 2, "scheduled": 2}
    store.close()
    server.server.remove()
