"""The short way for a job that returned says the same as the long one."""

from __future__ import annotations

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from millpond.job import Attempt, Job, JobOptions, JobState, Returned
from millpond.settlement import completed, settlement

instants = st.integers(0, 2**50)


@given(
    st.tuples(instants, instants, instants), st.integers(0, 9), st.binary(max_size=50), st.integers(1, 9**6)
)
def test_both_ways_agree(times, attempt, result, worker):
    run_at, started_at, now = times
    job = Job(
        "01a1e235-3d1e-7e99-aa16-0d222a4f3cd0", "t", "q", JobState.RUNNING, None, 1, run_at, run_at, run_at,
        None, None, None, attempt, 1, 2, 3, 7, "n", False, False, None, (), (), JobOptions(), b"{}",
    )  # fmt: skip
    long = settlement(job, Returned(result), "host-1-ab", now=now, started_at=started_at, worker=worker)
    short = completed(job, result, b'"host-1-ab"', now=now, started_at=started_at, worker=worker)
    read = msgspec.json.Decoder(Attempt).decode
    assert read(short.transition.line) == read(long.transition.line)
    nothing = {"line": b""}
    assert msgspec.structs.replace(
        short, transition=msgspec.structs.replace(short.transition, **nothing)
    ) == msgspec.structs.replace(long, transition=msgspec.structs.replace(long.transition, **nothing))
