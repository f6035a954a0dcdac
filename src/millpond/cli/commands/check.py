"""`millpond check`: can this app run on this store? Looks at everything, then says what to do next.

Each finding is a line; one that is not ok makes the exit code 1. The clock is compared through a line in a
log of the store, which also shows that the store can be written to.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from millpond.cli import stored_jobs
from millpond.cli.context import NO_APP, Session, shared
from millpond.cli.exit_codes import FAILED, Refusal, one_line
from millpond.cli.output import facts, number_of, table, words
from millpond.errors import MillpondError, SchemaOutdated
from millpond.job import MICROSECONDS
from millpond.rules.store import dead_rows
from millpond.rules.store.headroom import Memory, level
from millpond.store.protocol import Counts, Store

if TYPE_CHECKING:
    from rich.console import RenderableType

    from millpond.app import App

FAR = 2.0  # seconds by which the clocks may differ: above it, delays are off by as much
Finding = tuple[str, bool, str]  # what was looked at, whether it is all right, what was found


@click.command("check")
@shared
@click.pass_obj
def command(session: Session) -> None:
    """Check the app and its store; exit code 1 if something is wrong."""
    app, findings = _app(session)
    findings += _two_stores(session, app) or _store(session, app)
    ok = all(good for _, good, _ in findings)
    described = _described(app)
    document = {
        "ok": ok,
        "findings": [{"name": name, "ok": good, "text": text} for name, good, text in findings],
        **described,
    }
    session.answer(document, lambda: _page(findings, described, ok=ok))
    if not ok:
        raise click.exceptions.Exit(FAILED)


# --- the app ---------------------------------------------------------------------------------------------
def _app(session: Session) -> tuple[App | None, list[Finding]]:
    try:
        if session.config["app"] is None:
            return None, [("app", False, NO_APP)]
        app = session.app
    except (Refusal, click.UsageError) as error:
        return None, [("app", False, one_line(error.format_message()))]
    found: list[Finding] = [("app", True, f"{session.config['app']} has {number_of(len(app.tasks), 'task')}")]
    if not app.tasks:
        found[0] = ("app", False, f"{session.config['app']} has no tasks: decorate a function with @app.task")
    return app, [*found, *_pools(app), *_recurring(app)]


def _recurring(app: App) -> Iterator[Finding]:
    """Names that nobody has, circles: what only shows when every task is known."""
    if not any(hasattr(task, "cadence") for task in app.tasks.values()):
        return
    try:
        from millpond.recurring import never_run

        app.orchestrator.check()
    except MillpondError as error:
        yield "recurring", False, one_line(str(error))
    else:
        yield "recurring", True, number_of(len(app.orchestrator.tasks), "recurring task")
        yield from (("recurring", False, one_line(said)) for said in never_run(app.orchestrator.tasks))


def _pools(app: App) -> Iterator[Finding]:
    for name, settings in app.pools.items():
        tasks = [task for task in app.tasks.values() if task.queue in settings.queues]
        if not tasks:
            yield (
                "pool",
                False,
                f"pool {name!r} serves no task: give one queue={settings.queues[0]!r}, or remove the pool",
            )
        if settings.kind != "async":
            continue
        for task in tasks:
            if not task.is_async:
                cure = "make it `async def`, or give it another queue"
                yield "pool", False, f"task {task.name} is not async, but pool {name!r} is: {cure}"


def _described(app: App | None) -> dict[str, Any]:
    if app is None:
        return {"tasks": [], "queues": [], "pools": {}}
    tasks = [
        {"name": task.name, "queue": task.queue, "priority": task.priority, "async": task.is_async}
        for task in sorted(app.tasks.values(), key=lambda task: task.name)
    ]
    served = {queue for settings in app.pools.values() for queue in settings.queues}
    queues = sorted({task.queue for task in app.tasks.values()} | served)
    pools = {
        name: {
            key: _plain(value)
            for key, value in settings._asdict().items()
            if key != "name" and value is not None
        }
        for name, settings in app.pools.items()
    }
    return {"tasks": tasks, "queues": queues, "pools": pools}


def _plain(value: object) -> object:
    if isinstance(value, tuple):
        return list(value)
    return value if isinstance(value, str | int | float | None) else str(value)


def _two_stores(session: Session, app: App | None) -> list[Finding]:
    """The code and the settings name different stores: then neither is looked at."""
    try:
        if app is not None:
            session.check_store()
    except click.UsageError as error:
        return [("store", False, one_line(error.format_message()))]
    return []


# --- the store -------------------------------------------------------------------------------------------
def _store(session: Session, app: App | None) -> list[Finding]:
    try:
        store = app.store if app is not None else session.store
    except (MillpondError, click.ClickException) as error:
        text = error.format_message() if isinstance(error, click.ClickException) else str(error)
        return [("store", False, one_line(text))]
    try:
        counts = store.counts()
    except SchemaOutdated as error:
        return [("store", True, f"{store.url} can be reached"), ("schema", False, one_line(str(error)))]
    except MillpondError as error:
        return [("store", False, one_line(f"{error}; check that it runs and that the URL is right"))]
    waiting = "" if counts.nodes else ": jobs wait until one is started"
    return [
        ("store", True, f"{store.url} can be reached"),
        ("schema", True, _schema(store)),
        *_engine(store),
        ("nodes", True, f"{len(counts.nodes)} have a lease{waiting}"),
        *_jobs(app, counts),
    ]


def _schema(store: Store) -> str:
    """Which schema is there, which code it takes, and what may be done about it."""
    known, found = store.versions.known, store.versions.seen
    if found is None:
        return "up to date"
    said = f"version {found.version}, for code from {found.compatible_from} on; this code knows {known}"
    if found.version > known:
        return f"{said} and works on it: nodes of the newer Millpond may be started"
    with store.upgrade() as upgrade:
        may_contract = found.version in upgrade.contractions()
    if may_contract and found.compatible_from < found.version:
        return f"{said}; once no older code runs: `millpond migrate --contract`"
    return said


def _jobs(app: App | None, counts: Counts) -> list[Finding]:
    if app is None or not app.tasks:
        return []
    try:
        return stored_jobs.findings(app, counts)
    except MillpondError as error:
        return [("jobs", False, one_line(str(error)))]


def _engine(store: Store) -> Iterator[Finding]:
    try:
        durability = store.durability()
        yield "durability", True, durability
        if store.url.startswith("sqlite:"):
            import apsw

            yield "SQLite", True, f"version {apsw.sqlite_lib_version()}"
        yield from _memory(store)
        yield from _cleanup(store)
        yield _clock(store)
    except MillpondError as error:
        yield "store", False, one_line(str(error))


def _memory(store: Store) -> Iterator[Finding]:
    """Of a store that lives in memory; without a limit its machine decides, and kills it."""
    ask = getattr(store, "memory", None)
    memory: Memory | None = ask() if ask else None
    if memory is None:
        return
    if memory.limit <= 0:
        yield "memory", True, f"{memory.used:,} bytes are used, and there is no limit: set maxmemory"
        return
    cure = "" if level(memory) == 0 else ": raise maxmemory, or keep ended jobs for a shorter time"
    said = f"{memory.share:.0%} of {memory.limit:,} bytes are used{cure}"
    yield "memory", level(memory) < 2, said


def _cleanup(store: Store) -> Iterator[Finding]:
    """Of a store whose server removes dead rows: what keeps it from that."""
    ask = getattr(store, "holdbacks", None)
    if ask is None:
        return
    found: list[dead_rows.Holdback] = ask()
    hidden = sum(one.age is None for one in found)
    _, oldest = dead_rows.look({}, found, 0.0)
    said = "no old transaction holds it back"
    if oldest is not None and dead_rows.level(oldest.age):
        said = f"a {oldest.kind} {oldest.name} has held it back for {oldest.age:.0f} s: "
        said += dead_rows.CURES[oldest.kind]
    if hidden:
        said += f"; of {hidden} more the age is not shown: GRANT pg_read_all_stats to see those of sessions"
    yield "clean-up", oldest is None or dead_rows.level(oldest.age) < 2, said


def _clock(store: Store) -> Finding:
    """How far the store's clock is from ours; the round trip is the margin."""
    before = time.time_ns() // 1000
    line = store.log("check", [b"{}"], limit=1, keep=1)[-1]
    after = time.time_ns() // 1000
    apart = max(before - line.at, line.at - after, 0) / MICROSECONDS
    if apart > FAR:
        return "clock", False, f"the store's clock is {apart:.1f} s away from ours: let NTP set both"
    return "clock", True, f"{apart:.1f} s away from ours"


# --- for people ------------------------------------------------------------------------------------------
def _page(findings: list[Finding], described: dict[str, Any], *, ok: bool) -> list[RenderableType]:
    parts: list[RenderableType] = []
    if described["tasks"]:
        rows = [
            (task["name"], task["queue"], "async" if task["async"] else "") for task in described["tasks"]
        ]
        parts += [table(("task", "queue", "kind"), rows, most=None), words("")]
    if described["pools"]:
        pools = [
            (queue, ", ".join(f"{name}={value}" for name, value in options.items()))
            for queue, options in described["pools"].items()
        ]
        parts += [table(("pool", "options"), pools, most=None), words("")]
    lines = [(name, "ok" if good else "WRONG", text) for name, good, text in findings]
    parts.append(facts(lines))
    parts.append(
        words("all is well" if ok else "put right what is WRONG above, then run `millpond check` again")
    )
    return parts
