"""The threads in which the API asks its store."""

from __future__ import annotations

import pytest

from millpond.api.options import Limits
from millpond.api.problems import Problem
from millpond.api.threads import Threads


async def test_a_request_that_comes_while_the_server_stops_is_refused_and_not_an_error():
    threads = Threads(Limits())
    assert await threads.call(len, "abc") == 3
    threads.close()
    with pytest.raises(Problem, match="stopping"):
        await threads.call(len, "abc")
