"""The shared page: durations find their bucket, regions never overlap, both sides see the same words."""

import ctypes
import mmap
import os
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from millpond.pool.channel import shared_page as layout
from millpond.pool.channel.shared_page import HISTOGRAM, Page, Regions, bucket, bucket_bounds

calm = settings(deadline=None)
nanoseconds = st.integers(0, 2**63 - 1) | st.integers(0, 200) | st.integers(0, 62).map(lambda bits: 1 << bits)


# --- histogram buckets -------------------------------------------------------------------------------
@calm
@given(nanoseconds)
def test_a_duration_lies_within_the_bounds_of_its_bucket(duration):
    index = bucket(duration)
    low, high = bucket_bounds(index)
    assert 0 <= index < HISTOGRAM
    assert low * (1 - 1e-12) <= duration / 1e9 <= high * (1 + 1e-12)


@calm
@given(nanoseconds, nanoseconds)
def test_a_longer_duration_is_never_in_a_lower_bucket(one, other):
    assert bucket(min(one, other)) <= bucket(max(one, other))


def test_the_buckets_in_use_follow_each_other_without_gap_or_overlap():
    used = [0, *range(bucket(8), HISTOGRAM)]
    bounds = [bucket_bounds(index) for index in used]
    assert all(high == pytest.approx(low) for (_, high), (low, _) in pairwise(bounds))
    assert bounds[0] == (0.0, 8e-9)
    assert all((high - low) / low <= 0.25 + 1e-9 for low, high in bounds[1:])


def test_the_buckets_below_the_first_one_in_use_stand_for_it():
    assert {bucket_bounds(index) for index in range(bucket(8))} == {(0.0, 8e-9)}


# --- the page ------------------------------------------------------------------------------------
def test_two_views_of_one_page_share_its_words_ring_and_arenas():
    one = Page.create("millpond-test")
    other = Page(os.dup(one.descriptor))
    one.words[layout.TASKS_DONE] = 2**64 - 1
    one.ring[-1], one.arena_in[0], one.arena_out[-1] = 1, 2, 3
    assert other.words[layout.TASKS_DONE] == 2**64 - 1
    assert (other.ring[-1], other.arena_in[0], other.arena_out[-1]) == (1, 2, 3)
    assert (len(one.ring), len(one.arena_in), len(one.arena_out)) == (
        layout.RING_BYTES,
        layout.ARENA_BYTES,
        layout.ARENA_BYTES,
    )
    one.close()
    other.close()


def test_a_page_gives_back_its_descriptor_and_its_memory():
    page = Page.create("millpond-test")
    descriptor = page.descriptor
    page.close()
    with pytest.raises(OSError):
        os.fstat(descriptor)
    assert page.memory.closed


def test_arenas_that_the_system_does_not_take_back_stay(monkeypatch):
    """Locked memory cannot be given back. On a machine with large pages the arenas begin within one."""
    page = Page.create("test")
    libc = ctypes.CDLL(None, use_errno=True)
    start = ctypes.addressof(ctypes.c_char.from_buffer(page.arena_in))
    assert libc.mlock(ctypes.c_void_p(start), ctypes.c_size_t(mmap.PAGESIZE)) == 0
    page.arena_in[:4] = b"kept"
    page.empty_arenas()
    assert bytes(page.arena_in[:4]) == b"kept"
    monkeypatch.setattr(mmap, "PAGESIZE", 65536)
    page.empty_arenas()
    page.arena_in[:4] = bytes(4)


def test_a_page_that_cannot_be_mapped_leaves_no_descriptor(monkeypatch):
    descriptor = os.memfd_create("millpond-test")

    def refuse(*_):
        raise OSError("no memory")

    monkeypatch.setattr(layout, "memfd_create", lambda *_: descriptor)
    monkeypatch.setattr(mmap, "mmap", refuse)
    with pytest.raises(OSError, match="no memory"):
        Page.create("millpond-test")
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(descriptor)


def test_a_page_tells_what_runs_and_since_when():
    page = Page.create("millpond-test")
    assert page.running() == (0, 0)
    page.words[layout.SLOTS], page.words[layout.SLOTS + 1] = 7, 123
    last = layout.SLOTS + 2 * (layout.MAX_SLOTS - 1)
    page.words[last], page.words[last + 1] = 8, 456
    assert page.running() == (7, 123)
    assert page.running(layout.MAX_SLOTS - 1) == (8, 456)
    page.close()


def test_what_runs_is_read_again_when_it_changed_in_between():
    page = Page.create("millpond-test")

    class Changing(list):
        reads = 0

        def __getitem__(self, index):
            self.reads += 1
            if self.reads == 2:
                self[layout.SLOTS] = 9  # another task begins between the two reads of the number
            return super().__getitem__(index)

    words = page.words
    page.words = Changing(words)  # type: ignore[assignment]
    page.words[layout.SLOTS], page.words[layout.SLOTS + 1] = 7, 123
    assert page.running() == (9, 123)
    words.release()
    page.words = words
    page.close()


def test_a_stack_dumped_behind_the_mapping_can_be_read():
    page = Page.create("millpond-test")
    assert (page.stack(), page.stack_size()) == ("", 0)
    os.pwrite(page.descriptor, b"\nFile x, line 1 in f \xff\n", layout.STACK)
    assert page.stack() == "File x, line 1 in f \N{REPLACEMENT CHARACTER}"
    assert page.stack_size() == 23
    page.close()


# --- regions of an arena ------------------------------------------------------------------------------
SIZE = 1000


class Arena(RuleBasedStateMachine):
    """Regions are taken and given back in any order; live ones may never overlap."""

    def __init__(self):
        super().__init__()
        self.regions = Regions(SIZE)
        self.live: dict[int, tuple[int, int]] = {}

    @rule(length=st.integers(1, SIZE // 3) | st.integers(1, SIZE + 10))
    def take(self, length):
        region = self.regions.take(length)
        if region is None:
            assert self.live or length > SIZE // 2, "an empty arena refused half of itself"
            return
        position, offset = region
        assert position not in self.live
        assert offset >= 0
        assert offset + length <= SIZE
        for start, end in self.live.values():
            assert offset + length <= start or end <= offset
        self.live[position] = (offset, offset + length)

    @precondition(lambda self: self.live)
    @rule(choice=st.integers(0, 100))
    def give_back(self, choice):
        position = list(self.live)[choice % len(self.live)]
        del self.live[position]
        self.regions.give_back(position)

    @invariant()
    def the_books_hold_no_more_than_the_arena(self):
        assert self.regions._head - self.regions._tail <= SIZE
        assert bool(self.live) == bool(self.regions._spans)

    def teardown(self):
        for position in list(self.live):
            self.regions.give_back(position)
        assert self.regions.take(SIZE // 2) is not None


TestArena = Arena.TestCase
TestArena.settings = settings(deadline=None, max_examples=60, stateful_step_count=40)


def test_a_full_arena_says_none_until_the_first_region_is_back():
    regions = Regions(SIZE)
    taken = [regions.take(100) for _ in range(10)]
    positions = [region[0] for region in taken if region is not None]
    assert [region[1] for region in taken if region is not None] == list(range(0, SIZE, 100))
    assert regions.take(1) is None
    regions.give_back(positions[1])
    assert regions.take(1) is None, "space behind a live region must wait for it"
    regions.give_back(positions[0])
    assert regions.take(200) == (SIZE, 0)
    assert regions.take(1) is None


def test_more_than_the_arena_is_refused():
    assert Regions(SIZE).take(SIZE + 1) is None
    assert Regions(SIZE).take(SIZE) == (0, 0)


def test_an_arena_that_is_empty_again_can_be_had_whole_again():
    regions = Regions(SIZE)
    first = regions.take(600)
    assert first is not None
    regions.give_back(first[0])
    assert regions.take(SIZE) is not None
