"""Waiting for work: a hint that comes from threads and from other processes. Polling stays the truth."""

from __future__ import annotations

import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor

import pytest

from millpond.job import Released, Slot
from millpond.store.open import open_store
from millpond.store.protocol import Filter
from tests.stores.acting import Node, dead_job, new_job, opened, put, put_many
from tests.stores.places import address_and_name

PUT = """
import sys
from millpond.store.open import open_store
from tests.stores.acting import new_job
store = open_store(sys.argv[1])
store.enqueue([new_job(queue=sys.argv[2], fresh=sys.argv[3] == "fresh")])
store.close()
"""


class Listener:
    """A thread that waits for work again and again, and tells when it was told of some."""

    def __init__(self, store, queues=("default",)):
        self.heard, self.listening = threading.Event(), threading.Event()
        self._over = threading.Event()
        self._store, self._queues = store, queues
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()
        assert self.listening.wait(30)

    def _listen(self):
        self._store.wait(self._queues, 0.01)  # connects
        self.listening.set()
        while not self._over.is_set():
            if self._store.wait(self._queues, 0.5):
                self.heard.set()

    def until_heard(self, act, *others):
        """Do it again until one of us has heard of it: the first may come before we listen."""
        for _ in range(100):
            act()
            if any(listener.heard.wait(0.1) for listener in (self, *others)):
                return
        pytest.fail("nobody heard")

    def stop(self):
        self._over.set()
        self._thread.join()


@pytest.fixture
def listen():
    made = []

    def begin(store, queues=("default",)):
        made.append(Listener(store, queues))
        return made[-1]

    yield begin
    for listener in made:
        listener.stop()


def test_nothing_comes_of_nothing(store):
    assert store.wait(["default"], 0.01) is False
    assert store.wait(["default"], 0.0) is False


def test_a_claim_that_gets_nothing_wakes_nobody(store):
    """A node whose one pool is full and whose other has nothing to do would wake itself for ever."""
    put(store, new_job(queue="full"))
    node = Node(store)
    store.configure(queue="slow", rate=0.001)
    put_many(store, 3, queue="slow")
    while node.claim(queue="slow"):
        pass  # what the rate allows at first
    while store.wait(["full", "slow"], 0.5):
        pass  # what is to be heard of that was heard, late announcements too
    for queue, without in (("empty", ()), ("slow", ()), ("full", (new_job().task,))):
        assert node.claim(queue=queue, without=without) == []
        assert store.wait(["full", "slow"], 0.0) is False


@pytest.mark.parametrize("fresh", [True, False])
def test_a_job_from_another_thread_is_heard(store, listen, fresh):
    listener = listen(store)
    listener.until_heard(lambda: put(store, new_job(fresh=fresh)))


@pytest.mark.parametrize("kind", ["fresh", "known"])
def test_a_job_from_another_process_is_heard(url, open_at, listen, kind):
    listener = listen(open_at(url))
    for _ in range(5):
        subprocess.run([sys.executable, "-c", PUT, url, "default", kind], check=True)
        if listener.heard.wait(1):
            return
    pytest.fail("five jobs came and none was heard")


def test_one_of_many_queues_is_enough(url, open_at, listen):
    listener = listen(open_at(url), ("a", "b", "c"))
    other = open_at(url)
    listener.until_heard(lambda: put(other, new_job(queue="b")))


def test_nodes_that_find_nothing_do_not_keep_each_other_awake(url, open_at):
    store, other = open_at(url), open_at(url)
    node = Node(other, "other")
    store.wait(["default"], 0.01)  # connects
    over = threading.Event()

    def look_for_work():
        while not over.is_set():
            node.claim()

    looking = threading.Thread(target=look_for_work)
    looking.start()
    try:
        assert store.wait(["default"], 0.3) is False
    finally:
        over.set()
        looking.join()


def test_several_threads_may_wait_at_once(store, listen):
    listeners = [listen(store) for _ in range(3)]
    listeners[0].until_heard(lambda: put(store, new_job()), *listeners)


def test_a_store_may_be_closed_under_one_who_waits(store, listen):
    listener = listen(store)
    store.close()
    listener.until_heard(lambda: put(store, new_job()))


def test_without_notifications_there_is_still_polling(postgres_url):
    store = opened(postgres_url + "&notify=off")
    put(store, new_job(), new_job(unique="k"))
    assert store.wait(["default"], 0.01) is False
    store.log("l", [b"x"])
    store.close()


def test_a_listener_whose_connection_breaks_listens_again(postgres_url, open_at, listen):
    import psycopg

    store = open_at(postgres_url)
    listener = listen(store)
    with psycopg.connect(address_and_name(postgres_url)[0], autocommit=True) as admin:
        admin.execute(
            "SELECT pg_terminate_backend(pid) FROM pg_stat_activity"
            " WHERE pid <> pg_backend_pid() AND query LIKE 'LISTEN%'"
        )
    other = open_store(postgres_url)
    listener.until_heard(lambda: put(other, new_job()))
    other.close()


def ends_of_a_parent(store, node):
    (parent,) = put(store, new_job(queue="quiet"))
    put(store, new_job(depends_on=(parent,)))
    return lambda: node.run(queue="quiet")


def a_replay(store, node):
    job = dead_job(store, node)
    return lambda: store.replay(Filter(ids=(job,)))


def a_release(store, node):
    put(store, new_job())
    job = node.claim_one()
    return lambda: node.settle(job, outcome=Released())


def a_rescue(store, node):
    put(store, new_job())
    gone = Node(store, "gone")
    gone.claim_one()
    return lambda: store.rescue(node.name, gone=["gone"])


def a_resumed_queue(store, _):
    store.configure(queue="default", paused=True)
    put(store, new_job())
    return lambda: store.configure(queue="default", paused=False)


def a_larger_slot(store, node):
    put(store, new_job(slots=(Slot("s", 1),)), new_job(slots=(Slot("s", 1),)))
    node.claim()
    return lambda: store.configure(slot=Slot("s", 2))


def a_freed_slot(store, node):
    put(store, new_job(slots=(Slot("s", 1),)), new_job(slots=(Slot("s", 1),)))
    (job,) = node.claim()
    return lambda: node.settle(job)


CAUSES = [
    ends_of_a_parent,
    a_replay,
    a_release,
    a_rescue,
    a_resumed_queue,
    a_larger_slot,
    a_freed_slot,
]


@pytest.mark.parametrize("cause", CAUSES, ids=lambda cause: cause.__name__)
def test_work_is_heard_of_however_it_comes(url, open_at, cause):
    store, other = open_at(url), open_at(url)
    act = cause(other, Node(other))
    with ThreadPoolExecutor(1) as thread:
        while thread.submit(store.wait, ["default"], 0.05).result():  # connects, and hears what came before
            pass
        heard = thread.submit(store.wait, ["default"], 20.0)
        act()
        assert heard.result(30)
