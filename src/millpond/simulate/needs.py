"""What a simulated node has and what its tasks need, as people write it: `memory=8GB,cpu=4,gpu=1`.

`images:memory=2GB` is said of one task, `memory=2GB` of all. Nothing is guessed: a task that the workload
does not have is refused.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from typing import TypeVar

from millpond.errors import OptionError
from millpond.node.resources.needs import need
from millpond.options import nearest
from millpond.rules.resources.fit import Budget
from millpond.simulate.records import ONLY, UNBOUNDED, Workload
from millpond.units import size_in_bytes

T = TypeVar("T")
MOST_TOLD = 20  # tasks in an error message
BUDGET, NEED, PEAK = "--budget", "--need", "--peak"


def rationed(workload: Workload, needs: Iterable[str], peaks: Iterable[str]) -> Workload:
    """The workload, with what its tasks are said to need and to use; that counts more than what it says."""
    said = _by_task(
        workload, ((NEED, text, need(_amounts(rest, NEED, text))) for text, rest in _split(needs))
    )
    used = ((PEAK, text, size_in_bytes(rest, name=f"{PEAK} {text!r:.80}")) for text, rest in _split(peaks))
    return workload._replace(
        needs={**workload.needs, **said}, peaks={**workload.peaks, **_by_task(workload, used)}
    )


def budget(text: str) -> Budget:
    """What a node has."""
    has = _amounts(text, BUDGET, text)
    memory, cpu = int(has.pop("memory", UNBOUNDED)), has.pop("cpu", math.inf)
    return Budget(memory, cpu=cpu, tokens=has)


def _split(texts: Iterable[str]) -> Iterable[tuple[str, str]]:
    return ((text, text.rpartition(":")[2]) for text in texts)


def _by_task(workload: Workload, said: Iterable[tuple[str, str, T]]) -> dict[str, T]:
    """For each task; what is said of one counts more than what is said of all."""
    of_all: dict[str, T] = {}
    of_one: dict[str, T] = {}
    names = workload.names
    for option, text, value in said:
        task, colon, _ = text.rpartition(":")
        if not colon:
            of_all.update(dict.fromkeys(names, value))
            continue
        if task not in names:
            raise OptionError(f"{option} {text!r:.80}: {_unknown(task, workload)}")
        of_one[task] = value
    return {**of_all, **of_one}


def _unknown(task: str, workload: Workload) -> str:
    if not workload.tasks and task != ONLY:
        return f"{workload.name} does not tell tasks apart; leave {task!r:.40} and the colon out"
    return f"{workload.name} has no task {task!r:.40}{nearest(task, sorted(workload.names)[:MOST_TOLD])}"


def _amounts(text: str, option: str, whole: str) -> dict[str, float]:
    """`memory=2GB,cpu=1` as numbers: bytes of memory, cores, tokens."""
    found: dict[str, float] = {}
    for part in text.split(","):
        name, equals, number = (piece.strip() for piece in part.partition("="))
        if not name.isidentifier() or not equals or name in found:
            example = "images:memory=2GB,cpu=1" if option == NEED else "memory=8GB,cpu=4,gpu=1"
            raise OptionError(f"{option} must be such as {example}, not {whole!r:.80}")
        if name == "memory":
            found[name] = size_in_bytes(number, name=f"memory in {option} {whole!r:.80}")
        else:
            found[name] = _number(number)
        if not 0 < found[name] < math.inf:
            raise OptionError(f"{name} in {option} {whole!r:.80} must be a number above zero")
    return found


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan
