"""Frames on a real socket: however the bytes are cut, the same frames come out, in memory of their own."""

import random
import socket

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from millpond.pool.channel.buffers import HUGE
from millpond.pool.channel.frames import CHUNK_READ, FRAME, FrameReader

calm = settings(deadline=None, max_examples=60)
EDGES = (0, 1, 7, FRAME.size, CHUNK_READ - FRAME.size, CHUNK_READ - 1, CHUNK_READ, CHUNK_READ + 1)
sizes = st.sampled_from(EDGES) | st.integers(0, 300) | st.integers(0, 200_000)
shapes = st.lists(st.tuples(st.integers(1, 255), sizes, st.just(0) | sizes), min_size=1, max_size=6)


@pytest.fixture
def pair():
    ours, theirs = socket.socketpair()
    ours.setblocking(False)
    theirs.setblocking(False)
    with ours, theirs:
        yield ours, theirs


def make(shapes, seed=0):
    noise = random.Random(seed)
    return [(kind, noise.randbytes(body), noise.randbytes(tail)) for kind, body, tail in shapes]


def encode(frames):
    return b"".join(FRAME.pack(kind, len(body), len(tail)) + body + tail for kind, body, tail in frames)


def drain(reader):
    frames = []
    try:
        while True:
            frames += reader.read()
    except BlockingIOError:
        return frames


def pass_through(pair, reader, data, cuts):
    """Send `data` cut at the given places, reading all there is after each piece."""
    frames = []
    for start, end in zip([0, *cuts], [*cuts, len(data)], strict=True):
        piece = memoryview(data)[start:end]
        while piece:
            try:
                piece = piece[pair[0].send(piece) :]
            except BlockingIOError:
                frames += drain(reader)
        frames += drain(reader)
    return frames


def plain(frames):
    return [(frame.kind, bytes(frame.body), bytes(frame.tail)) for frame in frames]


@calm
@given(shapes=shapes, seed=st.integers(0, 99), data=st.data())
def test_frames_cut_at_random_arrive_whole_and_in_order(shapes, seed, data):
    frames = make(shapes, seed)
    raw = encode(frames)
    cuts = data.draw(st.lists(st.integers(0, len(raw)), max_size=12).map(sorted))
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        got = pass_through((ours, theirs), FrameReader(theirs), raw, cuts)
    assert plain(got) == frames


@calm
@given(shapes=st.lists(st.tuples(st.integers(1, 255), st.integers(0, 40), st.integers(0, 40)), max_size=5))
def test_frames_that_come_byte_by_byte_arrive_whole(shapes):
    frames = make(shapes)
    raw = encode(frames)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.setblocking(False)
        theirs.setblocking(False)
        got = pass_through((ours, theirs), FrameReader(theirs), raw, range(1, len(raw)))
    assert plain(got) == frames


@pytest.mark.parametrize("body", [0, 100, CHUNK_READ * 3])
@pytest.mark.parametrize("tail", [HUGE - 1, HUGE, HUGE + 12345])
def test_a_huge_tail_arrives_whole_between_small_frames(pair, body, tail):
    frames = make([(1, 10, 0), (2, body, tail), (3, 5, 5)])
    got = pass_through(pair, FrameReader(pair[1]), encode(frames), [])
    assert plain(got) == frames


@pytest.mark.parametrize("tail", [10, CHUNK_READ * 2, HUGE])
def test_a_tail_is_writable_memory_of_its_own(pair, tail):
    frames = make([(1, 3, tail), (2, 3, tail)])
    first, second = pass_through(pair, FrameReader(pair[1]), encode(frames), [])
    first.tail[:] = bytes(tail)
    assert plain([second]) == frames[1:]
    assert not first.tail.readonly


def test_a_frame_without_a_tail_has_an_empty_one(pair):
    (frame,) = pass_through(pair, FrameReader(pair[1]), encode([(7, b"body", b"")]), [])
    assert frame == (7, b"body", b"")
    assert len(frame.tail) == 0


@pytest.mark.parametrize("sent", [0, 1, FRAME.size, FRAME.size + 5, CHUNK_READ + 100])
def test_the_end_of_the_stream_is_an_error_wherever_it_comes(pair, sent):
    raw = encode(make([(1, CHUNK_READ * 2, 50)]))[:sent]
    reader = FrameReader(pair[1])
    assert pass_through(pair, reader, raw, []) == []
    pair[0].close()
    with pytest.raises(EOFError):
        reader.read()


def test_reading_an_empty_socket_says_so_and_loses_nothing(pair):
    frames = make([(1, CHUNK_READ * 3, 100)])
    raw = encode(frames)
    reader = FrameReader(pair[1])
    got = pass_through(pair, reader, raw[:70_000], [])
    with pytest.raises(BlockingIOError):
        reader.read()
    got += pass_through(pair, reader, raw[70_000:], [])
    assert plain(got) == frames
