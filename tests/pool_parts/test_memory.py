"""Memory for large payloads: used again when nobody holds it any more, and never one moment before."""

import mmap
import pickle
import threading

import numpy as np
import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from millpond.pool.channel import buffers
from millpond.pool.channel.buffers import HUGE, KEPT_BYTES, KEPT_PIECES, fresh


@pytest.fixture(autouse=True)
def nothing_kept(monkeypatch):
    monkeypatch.setattr(buffers, "_kept", [])


def address(view):
    return np.frombuffer(view, dtype=np.uint8).ctypes.data


@pytest.mark.parametrize("length", [1, 1000, HUGE - 1, HUGE, HUGE + 1, 3 * HUGE + 17])
def test_it_is_writable_and_of_the_length_asked_for(length):
    view = fresh(length)
    assert (view.nbytes, view.format, view.readonly) == (length, "B", False)
    view[0] = view[-1] = 255
    assert view[-1] == 255


def test_it_can_be_had_from_a_kernel_without_huge_pages(monkeypatch):
    class Plain(mmap.mmap):
        def madvise(self, *_):
            raise OSError(22, "Invalid argument")

    monkeypatch.setattr(mmap, "mmap", Plain)
    assert fresh(HUGE).nbytes == HUGE


def test_what_nobody_holds_is_given_out_again():
    first = address(fresh(HUGE + 5))
    assert address(fresh(HUGE + 9)) == first
    assert len(buffers._kept) == 1


def array_over(view):
    return np.frombuffer(view, dtype=np.uint8)


HOLDERS = {
    "the view": lambda view: view,
    "a slice": lambda view: view[100:200],
    "a read-only view": lambda view: view.toreadonly(),
    "a cast": lambda view: view[:800].cast("d"),
    "an array": array_over,
    "a part of an array": lambda view: array_over(view)[5:50].reshape(5, 9),
    "an unpickled array": lambda view: pickle.loads(
        pickle.dumps(np.zeros(len(view), dtype=np.uint8), 5, buffer_callback=lambda _: None), buffers=[view]
    ),
    "the mapping itself": lambda view: view.obj,
    "a reference cycle": lambda view: [view, lambda: view],
}


@pytest.mark.parametrize("name", HOLDERS)
def test_what_is_still_held_is_never_given_out(name):
    view = fresh(HUGE)
    where = address(view)
    holder = HOLDERS[name](view)
    del view
    others = [fresh(HUGE) for _ in range(3)]
    assert where not in [address(other) for other in others]
    assert len({address(other) for other in others}) == 3
    del holder


class Pieces(RuleBasedStateMachine):
    """Pieces are taken, filled, handed on and dropped; what is held must keep its content."""

    def __init__(self):
        super().__init__()
        buffers._kept.clear()
        self.held: list[tuple[int, np.ndarray]] = []
        self.marks = 0

    @rule(blocks=st.integers(1, 3), short=st.integers(0, 100))
    def take(self, blocks, short):
        view = fresh(blocks * HUGE - short + (100 if blocks == 1 else 0))
        self.marks = self.marks % 250 + 1
        view[:64] = view[-64:] = bytes([self.marks]) * 64
        self.held.append((self.marks, array_over(view)))

    @precondition(lambda self: self.held)
    @rule(choice=st.integers(0, 100))
    def drop(self, choice):
        del self.held[choice % len(self.held)]

    @precondition(lambda self: self.held)
    @rule(choice=st.integers(0, 100))
    def keep_only_the_end(self, choice):
        mark, whole = self.held[choice % len(self.held)]
        self.held[choice % len(self.held)] = (mark, whole[-64:])

    @invariant()
    def what_is_held_keeps_its_content(self):
        for mark, whole in self.held:
            assert whole[-1] == mark
            assert whole[0] == mark

    @invariant()
    def no_more_is_kept_than_agreed(self):
        assert len(buffers._kept) <= KEPT_PIECES
        assert sum(map(len, buffers._kept)) <= KEPT_BYTES


TestPieces = Pieces.TestCase
TestPieces.settings = settings(deadline=None, max_examples=15, stateful_step_count=40)


def test_a_very_large_piece_is_not_kept():
    fresh(KEPT_BYTES // 4 + 1)
    assert not buffers._kept


def test_the_oldest_are_let_go_of():
    held = [fresh(HUGE) for _ in range(KEPT_PIECES + 5)]
    assert len(buffers._kept) == KEPT_PIECES
    assert len({address(view) for view in held}) == len(held)


def test_several_threads_never_get_the_same_piece():
    clashes = []

    def use(mark):
        for _ in range(60):
            view = fresh(HUGE)
            view[:8] = view[-8:] = bytes([mark]) * 8
            if bytes(view[:8]) + bytes(view[-8:]) != bytes([mark]) * 16:
                clashes.append(mark)

    threads = [threading.Thread(target=use, args=(mark,)) for mark in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(20)
    assert not clashes
