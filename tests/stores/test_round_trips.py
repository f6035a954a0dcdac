"""What must take PostgreSQL one statement: a job is picked up only as fast as its claim travels."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NoReturn

import pytest

from millpond.job import JobState
from millpond.store.postgres.store import PostgresStore
from millpond.store.postgres.transaction import Statement, Transaction
from millpond.store.protocol import Claim
from tests.stores.acting import AnyStore, Node, new_job, put, put_many


class Curt(PostgresStore):
    """A store that refuses transactions of several statements."""

    def write(self, make: Callable[[int], object], *, patient: bool = False) -> NoReturn:
        raise AssertionError(f"a transaction for {make}")


@pytest.fixture
def curt(postgres_url: str, open_at: Callable[[str], AnyStore]) -> Iterator[Curt]:
    open_at(postgres_url).renew("n1", "here")
    store = Curt(postgres_url)
    yield store
    store.close()


def test_plain_jobs_are_stored_and_claimed_by_one_statement_each(curt: Curt) -> None:
    ids = put(curt, *(new_job(queue=queue, fresh=True) for queue in ("mail", "images", "mail")))
    answer = curt.exchange("n1", 1, claims=[Claim("mail", 1), Claim("images", 10)])
    assert [job.id for job in answer.claimed] == ids[:2]
    assert [job.state if job else None for job in curt.get(ids)] == [JobState.RUNNING] * 2 + [JobState.QUEUED]
    assert curt.exchange("n1", 2, claims=[Claim("images", 10)]).claimed == ()


def test_anything_else_is_left_to_a_transaction_and_nothing_has_happened(curt: Curt) -> None:
    (job,) = put(curt, new_job(fresh=True))
    curt.exchange("n1", 1, claims=[Claim("images", 1)])
    for number, claims in ((1, [Claim("default", 1)]), (2, [Claim("default", 1, ("other",))])):
        with pytest.raises(AssertionError, match="a transaction"):
            curt.exchange("n1", number, claims=claims)
    (found,) = curt.get([job])
    assert found is not None
    assert (found.state, found.token) == (JobState.QUEUED, 0)


def test_what_a_transaction_counts_travels_with_its_commit(
    postgres_url: str, open_at: Callable[[str], AnyStore], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Sessions share the rows in which they count: a node that is stopped before its commit would keep
    them."""
    store = open_at(postgres_url)
    node = Node(store)
    put_many(store, 2)
    jobs = node.claim()
    commit, path = Transaction.commit, tmp_path / "trace"

    def traced(work: Transaction, last: Statement | None) -> None:
        with path.open("w") as file:
            work._connection.pgconn.trace(file.fileno())
            commit(work, last)
            work._connection.pgconn.untrace()

    monkeypatch.setattr(Transaction, "commit", traced)
    node.settle(*jobs)
    lines = [line.split("\t") for line in path.read_text().splitlines()]
    first_answer = next(number for number, line in enumerate(lines) if line[1] == "B")
    sent = "".join(line[-1] for line in lines[:first_answer])
    assert "COMMIT" in sent
    assert '"completed"' in sent.partition("COMMIT")[0]
