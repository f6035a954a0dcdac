"""What can be done from the screen: a question to be answered first, and a call of the verb that the command
line and the HTTP API use for the same.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

from millpond.cli.output import number_of
from millpond.job import JobState
from millpond.node import audit
from millpond.node.commands import send
from millpond.store.protocol import Filter

if TYPE_CHECKING:
    from millpond.app import App

Document = dict[str, Any]
WHO = "millpond top"


class Deed(NamedTuple):
    """Something to do, once somebody has said yes."""

    question: str
    do: Callable[[], str]  # gives what to say afterwards


def turn_queue(app: App, queue: Document) -> Deed:
    """Pause a queue, or open it again."""
    name, paused = queue["queue"], not queue["paused"]
    verb, after = ("Pause", "paused") if paused else ("Resume", "open")
    more = " What runs goes on; nothing more is begun." if paused else ""

    def do() -> str:
        app.store.configure(queue=name, paused=paused)
        audit.write(app.store, "top", "queue.pause" if paused else "queue.resume", name)
        return f"queue {name}: {after}"

    return Deed(f"{verb} queue {name}?{more}", do)


def replay(app: App, queue: str, task: str | None = None) -> Deed:
    """Run the dead jobs of a queue again, or those of one task in it."""
    chosen = Filter(states=(JobState.DEAD,), queue=queue, task=task)
    whose = f"of queue {queue}" if task is None else f"of task {task} in queue {queue}"

    def do() -> str:
        number = app.store.replay(chosen)
        audit.write(app.store, "top", "dead.replay", whose, changed=number)
        return f"{number_of(number)} {whose} queued again"

    return Deed(f"Run all dead jobs {whose} again, with fresh budgets?", do)


def drain(app: App, node: Document) -> Deed:
    """Have a node finish and stop."""
    name = node["id"]

    def do() -> str:
        send(app.store, name, "drain")
        audit.write(app.store, "top", "node.drain", name)
        return f"node {name} was told to drain"

    return Deed(f"Drain node {name}? It finishes what runs, gives back the rest, and stops.", do)


def recycle(app: App, worker: Document) -> Deed:
    """Have a worker replaced."""
    node, pid = worker["node"], worker["pid"]

    def do() -> str:
        send(app.store, node, "recycle", worker=pid)
        audit.write(app.store, "top", "worker.recycle", node, worker=pid)
        return f"node {node} was told to replace worker {pid}"

    return Deed(f"Replace worker {pid} of pool {worker['pool']}, once what it runs has ended?", do)


def trigger(app: App, recurring: Document) -> Deed:
    """Run a recurring task now."""
    name = recurring["name"]

    def do() -> str:
        done = app.orchestrator.trigger(name)
        if done:
            audit.write(app.store, "top", "recurring.trigger", name)
        said = "runs already and may not overlap, or its breaker is open"
        return f"{name} was triggered" if done else f"{name} {said}"

    return Deed(f"Run {name} now?", do)


def turn_recurring(app: App, recurring: Document) -> Deed:
    """Disable a recurring task, or enable it again."""
    name = recurring["name"]
    is_on = bool(recurring["enabled"]) and recurring["breaker"] != "open"

    def do() -> str:
        if is_on:
            app.orchestrator.disable(name, by=WHO)
        else:
            app.orchestrator.enable(name, by=WHO)
        audit.write(app.store, "top", f"recurring.{'disable' if is_on else 'enable'}", name)
        return f"{name} is {'disabled' if is_on else 'enabled'}"

    more = " What runs goes on." if is_on else " Its failures are forgotten."
    return Deed(f"{'Disable' if is_on else 'Enable'} {name}?{more}", do)
