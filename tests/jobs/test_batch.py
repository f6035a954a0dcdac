"""Chains and groups: nothing but dependencies, stored all or none."""

import pytest

from millpond import App, JobState, OptionError, Retry, chain, group
from millpond.errors import ArgumentsRefused

done: list[str] = []


@pytest.fixture
def app():
    done.clear()
    return App("memory://")


@pytest.fixture
def jobs(app):
    with app.testing() as jobs:
        yield jobs


@pytest.fixture
def step(app):
    @app.task(name="step", retry=Retry(attempts=1))
    def step(name: str) -> str:
        if name == "bad":
            raise ValueError(name)
        done.append(name)
        return name

    return step


def test_a_chain_runs_one_after_the_other(jobs, step):
    handles = chain(step.bind("a"), step.using(priority=9).bind(name="b"), step.bind("c")).enqueue()
    assert [handle.job().state for handle in handles] == [JobState.QUEUED, JobState.BLOCKED, JobState.BLOCKED]
    assert handles[1].job().priority == 9
    jobs.run_due()
    assert done == ["a", "b", "c"]
    assert [handle.result() for handle in handles] == done


def test_a_chain_ends_where_a_step_dies(jobs, step):
    handles = chain(step.bind("a"), step.bind("bad"), step.bind("c"), step.bind("d")).enqueue()
    jobs.run_due()
    ends = [(handle.job().state, handle.job().reason) for handle in handles]
    assert ends == [
        (JobState.COMPLETED, None),
        (JobState.DEAD, "failed"),
        (JobState.CANCELLED, "dependency"),
        (JobState.CANCELLED, "dependency"),
    ]


def test_a_group_calls_back_when_all_have_completed(jobs, step):
    handles = group(step.bind("a"), step.using(delay="1h").bind("b"), then=step.bind("all")).enqueue()
    jobs.run_due()
    assert done == ["a"]
    jobs.advance("1h")
    jobs.run_due()
    assert done == ["a", "b", "all"]
    assert set(handles[2].job().depends_on) == {handles[0].id, handles[1].id}


def test_a_group_without_callback_is_just_its_steps(jobs, step):
    handles = group(step.bind("a"), step.bind("b")).enqueue()
    assert [handle.job().depends_on for handle in handles] == [(), ()]


async def test_chains_and_groups_nest(jobs, step):
    inner = group(step.bind("b"), chain(step.bind("c"), step.bind("d")), then=step.bind("e"))
    handles = await chain(step.bind("a"), inner, step.bind("f")).aenqueue()
    a, b, c, d, e, f = (handle.id for handle in handles)
    parents = [set(handle.job().depends_on) for handle in handles]
    assert parents == [set(), {a}, {a}, {c}, {b, d}, {e}]
    assert f
    jobs.run_due()
    assert (done[0], done[-2:], sorted(done)) == ("a", ["e", "f"], ["a", "b", "c", "d", "e", "f"])


def test_a_step_may_depend_on_others_besides(jobs, step):
    other = step.enqueue("other")
    first, second = chain(step.bind("a"), step.using(depends_on=[other, other]).bind("b")).enqueue()
    assert second.job().depends_on == (other.id, first.id)


def test_a_call_is_checked_when_it_is_bound(step):
    with pytest.raises(ArgumentsRefused, match="missing a required argument"):
        step.bind()
    assert repr(step.bind("a")) == "<Call of step>"


def test_batches_that_cannot_be_are_refused(app, step):
    other = App("memory://").task(name="other")(lambda: None)
    for steps, said in [
        ((), "at least one step"),
        ((5,), "a step is task.bind"),
        ((step,), "a step is task.bind"),
        ((step.bind("a"), other.bind()), "different apps"),
        ((step.bind("a"), step.using(transaction=object()).bind("b")), "same transaction"),
    ]:
        for make in (chain, group):
            with pytest.raises(OptionError, match=said):
                make(*steps)
    with pytest.raises(OptionError, match="besides `then`"):
        group(then=step.bind("a"))


def test_only_the_last_step_may_be_unique(app, step):
    with pytest.raises(OptionError, match="make only the last step unique"):
        chain(step.using(unique="u").bind("a"), step.bind("b")).enqueue()
    assert not app.store.counts().queues
    first, last = chain(step.bind("a"), step.using(unique="u").bind("b")).enqueue()
    again, same = chain(step.bind("a"), step.using(unique="u").bind("b")).enqueue()
    assert (again.created, same.created, same) == (True, False, last)
    assert first != again
