"""PostgreSQL: a node's row of exchanges is found where the last one has put it, and also where it is not."""

from __future__ import annotations

import threading

import psycopg
import pytest

from millpond.errors import NodeRefused
from millpond.store.protocol import Claim
from millpond.store.sql.query import Query
from tests.stores.acting import Node, put_many, the
from tests.stores.places import address_and_name

EARLIER = 600  # exchanges whose versions a snapshot keeps: some six pages of them
SIZED = "SELECT heap_blks_read + heap_blks_hit + idx_blks_read + idx_blks_hit FROM pg_statio_all_tables"


@pytest.fixture
def server(postgres_url, open_at):
    store = open_at(postgres_url)
    store.address, store.where = address_and_name(postgres_url)
    return store


@pytest.fixture
def node(server):
    return Node(server, "n1")


@pytest.fixture
def beside(server):
    """Another session, which sees and does what it likes."""
    with psycopg.connect(server.address, autocommit=True) as connection:
        yield lambda text: connection.execute(text.format(schema=server.where).encode())


@pytest.fixture
def snapshot(server):
    """A transaction of a user that keeps every version of every row."""
    with psycopg.connect(server.address) as connection:
        connection.execute("SET TRANSACTION ISOLATION LEVEL REPEATABLE READ")
        connection.execute("SELECT 1 FROM pg_class LIMIT 1")
        yield connection
        connection.rollback()


def claim(node):
    """An exchange of a single statement."""
    return node.claim(1)


def settle_nothing(node):
    """An exchange in a transaction."""
    return node.exchange(settlements=[])


def renew(node):
    return node.renew()


HOW = [claim, settle_nothing]
named = pytest.mark.parametrize("how", HOW, ids=lambda how: how.__name__)


def pages_read(server, beside, how, node, times=20):
    """How many pages of the table and its index that takes, as the server counts them."""
    before = _pages(server, beside)
    for _ in range(times):
        how(node)
    return _pages(server, beside) - before


def _pages(server, beside):
    for brisk in (True, False):
        with server._connection(brisk=brisk) as connection:
            connection.execute("SELECT pg_stat_force_next_flush()")
    ((found,),) = beside(f"{SIZED} WHERE relid = '{{schema}}.exchanges'::regclass").fetchall()
    return found


@pytest.mark.parametrize("how", [*HOW, renew], ids=lambda how: how.__name__)
def test_an_exchange_under_an_open_snapshot_reads_no_more_pages_after_many_others(
    server, node, beside, snapshot, how
):
    if snapshot.info.server_version < 150000:
        pytest.skip("this server tells its counters only now and then")
    how(node)
    at_first = pages_read(server, beside, how, node)
    for _ in range(EARLIER):
        claim(node)
    ((versions,),) = beside("SELECT pg_relation_size('{schema}.exchanges') / 8192").fetchall()
    assert versions >= 4  # pages: the snapshot does keep them
    later = pages_read(server, beside, how, node)
    assert later <= at_first + 40, (
        at_first,
        later,
    )  # an update that needs a new page looks at all of them once


@named
def test_a_row_that_another_session_has_moved_is_found(server, node, beside, how):
    how(node)
    beside("UPDATE {schema}.exchanges SET sequence = sequence")
    (job,) = put_many(server, 1)
    how(node)
    assert sequence_of(beside) == {"n1": node.sequence}
    if how is claim:
        assert the(server, job).node == "n1"


@named
def test_a_row_that_the_vacuum_has_moved_is_found(server, node, beside, how):
    second = Node(server, "n2")
    for _ in range(3):
        how(node)
        how(second)
    beside("VACUUM FULL {schema}.exchanges")
    for one in (node, second, node):
        how(one)
        assert sequence_of(beside) == {"n1": node.sequence, "n2": second.sequence}


@named
def test_a_remembered_place_where_another_nodes_row_lies_changes_nothing_there(server, node, beside, how):
    second = Node(server, "n2")
    how(node)
    how(second)
    places = server._places._places
    places["n1"], places["n2"] = places["n2"], places["n1"]
    how(node)
    assert sequence_of(beside) == {"n1": node.sequence, "n2": second.sequence}


@named
def test_a_node_whose_row_was_sealed_is_refused(server, node, beside, how):
    how(node)
    beside("UPDATE {schema}.exchanges SET sealed = TRUE")
    for act in (how, renew):
        with pytest.raises(NodeRefused, match="was rescued"):
            act(node)


@named
def test_a_node_whose_row_was_deleted_is_refused(server, node, beside, how):
    how(node)
    beside("DELETE FROM {schema}.exchanges")
    with pytest.raises(NodeRefused):
        how(node)
    with pytest.raises(NodeRefused):
        node.renew()


@named
def test_what_was_said_before_is_refused_at_the_remembered_place_too(server, node, beside, how):
    how(node)
    put_many(server, 1)
    node.sequence -= 1
    answer = node.exchange(claims=[Claim("default", 1)] if how is claim else [])
    assert answer.replayed
    assert answer.claimed == ()


@pytest.mark.parametrize("change", ["sequence = sequence", "sealed = TRUE"], ids=["moved", "sealed"])
@named
def test_a_row_that_moves_while_an_exchange_waits_for_it_is_found(node, beside, other, *, how, change):
    how(node)
    other.execute(f"UPDATE {node.store.where}.exchanges SET {change}".encode())
    answers = []

    def ask():
        try:
            answers.append(how(node))
        except NodeRefused as error:
            answers.append(error)

    thread = threading.Thread(target=ask)
    thread.start()
    waits_for(beside, other)
    other.commit()
    thread.join()
    (answer,) = answers
    if change == "sealed = TRUE":
        assert isinstance(answer, NodeRefused)
    else:
        assert sequence_of(beside) == {"n1": node.sequence}
        assert how is claim or not answer.replayed


def test_a_place_that_was_rolled_back_is_only_a_hint(server, node, beside):
    claim(node)
    with pytest.raises(RuntimeError):
        server.write(lambda _: (yield from _exchanged_in_vain(node.name)))
    claim(node)
    assert sequence_of(beside) == {"n1": node.sequence}


def _exchanged_in_vain(name):
    assert (yield Query("next_sequence", (name, 10**9)))
    raise RuntimeError


def sequence_of(beside):
    return dict(beside("SELECT node, sequence FROM {schema}.exchanges").fetchall())


def waits_for(beside, other):
    """Until some session waits for this one."""
    asked = (
        f"SELECT count(*) FROM pg_stat_activity WHERE {other.info.backend_pid} = ANY(pg_blocking_pids(pid))"
    )
    while beside(asked).fetchall() == [(0,)]:
        pass
