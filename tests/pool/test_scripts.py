"""Scripts and notebooks work as they are: what tasks do with globals of `__main__` is what they do in a
ProcessPoolExecutor's forked worker, and better where the script changes meanwhile."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.pool.tasks import PATIENCE

RunScript = Callable[..., str]
SCRIPTS = Path(__file__).parent / "scripts"


@pytest.mark.parametrize("command", [["ways.py"], ["-m", "scripts.ways"]], ids=["script", "module"])
def test_every_way_of_using_a_global_works_as_in_a_process_pool_executor(command: list[str]) -> None:
    folder = SCRIPTS if command[0] != "-m" else SCRIPTS.parent
    done = subprocess.run(
        [sys.executable, *command],
        capture_output=True,
        text=True,
        cwd=folder,
        timeout=2 * PATIENCE,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    told = json.loads(done.stdout)
    ours, theirs = told["Pool"], told["ProcessPoolExecutor"]
    assert len(ours) >= 90
    assert {way: ours[way] for way in ours if ours[way] != theirs[way]} == {}


LEFT_AT_HOME = """
import socket, threading
from millpond import Pool

connection = socket.socket()
started = (n for n in range(3))
next(started)
thread = threading.Thread(target=print)

class Holder:
    connection = connection

def use_connection(): return connection.fileno()
def use_generator(): return next(started)
def use_thread(): return thread.name
def use_main():
    import __main__
    return __main__.connection
def use_class(): return Holder()
def careful(): return "done" if True else connection

if __name__ == "__main__":
    with Pool(1) as pool:
        for call in (use_connection, use_generator, use_thread, use_main, use_class, careful):
            future = pool.submit(call)
            print(call.__name__, repr(future.exception(30)))
        print("argument", repr(pool.submit(careful, Holder()).exception(30)))
"""


def test_a_global_that_cannot_travel_is_named_with_the_way_out(run_script: RunScript) -> None:
    told = dict(line.split(" ", 1) for line in run_script(LEFT_AT_HOME).splitlines())
    for way, name in {
        "use_connection": "'connection'",
        "use_generator": "'started'",
        "use_thread": "'thread'",
        "use_main": "'connection'",
        "use_class": "'Holder'",
        "argument": "'Holder'",
    }.items():
        assert f"the global {name} of __main__ could not be sent to the worker" in told[way]
        assert "mp_context=" in told[way]
        assert "a module that the workers import" in told[way]
    assert told["careful"] == "None"


NOTEBOOK = """
from millpond import Pool

def run(cell):
    exec(cell, globals())

CELL = '''
factor = {0}

class Shape:
    def sides(self): return {0}

def helper(): return {0}

def direct(x): return {0}

value = Shape()
'''
USERS = '''
def task(x): return helper(), factor, Shape().sides(), value.sides(), direct(x)
'''

if __name__ == "__main__":
    with Pool(2, max_tasks_per_child=7) as pool:
        run(CELL.format(1) + USERS)
        first = task
        for version in (1, 2, 3):
            run(CELL.format(version))
            if version == 3:
                run(USERS)
            told = set(pool.map(task, range(40), chunksize=1))
            told |= set(pool.map(lambda x: task(x), range(9)))
            shapes = lambda: [shape.sides() for shape in (Shape(), value)]
            told |= {pool.submit(lambda: (helper(), factor, *shapes(), direct(0))).result()}
            told |= {pool.submit(first, 0).result()}
            print(told == {(version,) * 5}, set(pool.map(direct, range(9))) == {version})
"""


def test_a_helper_that_is_defined_anew_is_the_new_one_everywhere_and_after_recycling(
    run_script: RunScript,
) -> None:
    assert run_script(NOTEBOOK).splitlines() == ["True True"] * 3


OWN = """
from millpond import Pool

connection = None
count = 0

def connect():
    global connection
    connection = "the worker's"

def use():
    global count
    count += 1
    return connection, count

if __name__ == "__main__":
    with Pool(1, initializer=connect) as pool:
        print(pool.submit(use).result())
        connection, count = "the parent's", 100
        print(pool.submit(use).result())
"""


def test_what_code_in_a_worker_has_set_stays_its_own(run_script: RunScript) -> None:
    assert run_script(OWN).splitlines() == ['("the worker\'s", 1)', '("the worker\'s", 2)']


SENTINEL = """
from millpond import Pool

class Registry(dict): pass

MISSING = object()
REGISTRY = Registry()

def first(): return REGISTRY.setdefault("n", 1), MISSING is not None
def second(value=MISSING, registry=REGISTRY): return value is MISSING, registry is REGISTRY, registry["n"]

if __name__ == "__main__":
    with Pool(1) as pool:
        print(pool.submit(first).result(), pool.submit(second).result())
"""


def test_an_object_that_two_functions_share_is_one_object_however_late_the_second_comes(
    run_script: RunScript,
) -> None:
    assert run_script(SENTINEL).splitlines() == ["(1, True) (True, True, 1)"]
