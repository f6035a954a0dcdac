"""Tokens that all nodes share: what an app says becomes slots of its jobs."""

from __future__ import annotations

import pickle

import pytest

from millpond import App, OptionError, Resources
from millpond.job import Slot


def nothing() -> None:
    """A task."""


def test_a_job_that_needs_a_token_of_the_fleet_holds_its_slot():
    app = App("memory://", tokens={"ffmpeg": 2})
    convert = app.task(resources=Resources(ffmpeg=1, cpu=1))(nothing)
    job = convert.enqueue().job()
    assert job.slots == (Slot("token:ffmpeg", 2),)
    assert job.options.resources == {"cpu": 1, "ffmpeg": 1}


def test_a_token_that_the_fleet_does_not_share_is_one_of_the_node():
    app = App("memory://", tokens={"ffmpeg": 2})
    assert app.task(resources=Resources(gpu=1))(nothing).enqueue().job().slots == ()


def test_tokens_come_beside_the_slot_of_a_key():
    app = App("memory://", tokens={"ffmpeg": 2})

    @app.task(resources=Resources(ffmpeg=1), key="{user}", limit=3, name="convert")
    def convert(user: str) -> None: ...

    assert convert.enqueue("ada").job().slots == (Slot("convert:ada", 3), Slot("token:ffmpeg", 2))


def test_they_work_under_testing_too():
    app = App("memory://", tokens={"ffmpeg": 1})
    convert = app.task(resources=Resources(ffmpeg=1))(nothing)
    with app.testing() as jobs:
        for _ in range(3):
            convert.enqueue()
        assert jobs.run_due() == 3


@pytest.mark.parametrize("number", [2, 0.5])
def test_a_job_holds_one_of_a_token_that_the_fleet_shares(number):
    app = App("memory://", tokens={"ffmpeg": 4})
    convert = app.task(resources=Resources(ffmpeg=number))(nothing)
    with pytest.raises(OptionError, match="a job can hold one"):
        convert.enqueue()


@pytest.mark.parametrize(
    "tokens", [{"cpu": 1}, {"memory": 1}, {"a": 0}, {"a": 1.5}, {"": 1}, {5: 1}, ["a"], "a", {"a": True}]
)
def test_tokens_that_make_no_sense_are_refused(tokens):
    with pytest.raises(OptionError):
        App("memory://", tokens=tokens)


def test_an_app_takes_its_tokens_along_into_another_process():
    app = App("memory://", tokens={"ffmpeg": 2})
    assert pickle.loads(pickle.dumps(app)).tokens == {"ffmpeg": 2}
