"""`millpond run`: a node in the foreground, from its settings to its exit code.

Everything that can be found wrong is found before the node starts. What it serves is printed on stdout, what
happens goes to the log on stderr. Signals and the end are the business of `node/process/foreground.py`.
"""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import sys
import threading
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import click

from millpond.cli.context import Session, shared
from millpond.cli.exit_codes import Refusal
from millpond.cli.output import facts, span, table, words
from millpond.config import LEVELS, OFF, Config, health_address, load

if TYPE_CHECKING:
    from rich.console import RenderableType

    from millpond.app import App
    from millpond.node.node import Node
    from millpond.node.observability.report import NodeReport, PoolReport
    from millpond.node.observability.webhook import Webhook
    from millpond.options import Resources
    from millpond.store.protocol import Retention

RELOADED = ("grace", "log_level", "retention_completed", "retention_cancelled", "retention_dead")
logger = logging.getLogger("millpond.node")
SWITCH = 0.001  # a thread that hands out jobs must not wait 5 ms for one that takes ends
LEAVING = 3.0  # seconds that the threads and exit functions of an app may take once the node has stopped


@click.command("run")
@click.argument("target", metavar="[MODULE:APP]", required=False)
@click.option("--queue", "queues", multiple=True, metavar="NAME", help="Serve only this queue; repeatable.")
@click.option("--grace", metavar="DURATION", help="How long running jobs may finish at the end: 25s.")
@click.option("--lease", metavar="DURATION", help="How long a silent node keeps its jobs: 15s.")
@click.option("--max-workers", type=int, metavar="N", help="The most workers of all pools together.")
@click.option("--memory", metavar="SIZE", help="What jobs may use together: 8GB; else what there is.")
@click.option("--cpus", metavar="N", help="Cores that jobs may declare together; else what there are.")
@click.option("--health", metavar="HOST:PORT", help="Answer /livez, /readyz, /metrics and /scale there.")
@click.option("--no-health", is_flag=True, help="Answer nowhere, whatever the settings say.")
@click.option("--open-metrics", is_flag=True, default=None, help="Show /metrics and /scale without a token.")
@click.option("--log-format", type=click.Choice(["text", "json"]), help="What log lines look like.")
@click.option("--log-level", type=click.Choice(LEVELS), help="The least important lines to write: info.")
@click.option("--dashboard", "beside", is_flag=True, help="Serve the dashboard beside it.")
@click.option("--listen", "dashboard", metavar="HOST:PORT", help="Where the dashboard is: 127.0.0.1:8640.")
@shared
@click.pass_obj
def command(session: Session, /, *, target: str | None, beside: bool, no_health: bool, **flags: Any) -> None:
    """Run jobs: a node with a pool for every queue, until a signal stops it.

    \b
    millpond run jobs:app
    millpond run jobs:app --queue images --queue mail --health 127.0.0.1:8650

    \b
    SIGTERM, Ctrl-C  drain: running jobs finish within --grace, the rest goes back
                     a second one gives them a second more, a third kills them
    SIGQUIT          kills at once
    SIGTSTP, SIGCONT stop claiming jobs, and go on
    SIGHUP           reads the settings again
    SIGUSR2          writes every thread's stack to stderr
    """  # noqa: D301 - click wants a bare backspace before lines it shall keep
    from millpond.node.observability.logs import on_stderr

    _be_mortal()
    _take(session, target, no_health=no_health, **flags)
    session.check_store()
    config, app = session.config, session.app
    sys.setswitchinterval(SWITCH)
    node = _node(session, config, app)
    log = on_stderr(config["log_format"], config["log_level"])
    with log, _dashboard(session, config, is_wanted=beside) as page:
        code = _serve(session, config, node, page)
    _leave_within(LEAVING, code)
    raise click.exceptions.Exit(code)


def _be_mortal() -> None:
    """Process 1 does not die of a signal it does not handle; the node's own handlers come with the node."""
    if os.getpid() == 1:
        signal.signal(signal.SIGTERM, lambda number, _: os._exit(128 + number))


def _take(session: Session, target: str | None, *, no_health: bool, **flags: Any) -> None:
    """Put the flags where the settings are read from."""
    named = session.flags["app"]
    if target is not None and named is not None and target != named:
        raise click.UsageError(f"two apps are named, {target} and --app {named}: leave one out")
    if no_health and flags["health"] is not None:
        raise click.UsageError("--health and --no-health contradict each other: leave one out")
    session.flags["app"] = target if target is not None else named
    flags["health"] = OFF if no_health else flags["health"]
    flags["queues"] = flags["queues"] or None
    session.flags.update(flags)


def _node(session: Session, config: Config, app: App) -> Node:
    """A node that can be started: there is something to run, and the store answers."""
    from millpond.errors import OptionError
    from millpond.node.node import Node

    if not app.tasks:
        raise Refusal(f"{config['app']} has no tasks: decorate a function with @app.task")
    try:
        node = Node(
            app,
            queues=config["queues"] or None,
            grace=config["grace"],
            lease=config["lease"],
            retention=_retention(config),
            alerts=alerts_of(config),
            max_workers=config["max_workers"],
            budget=_budget(config),
            unknown_after=config["unknown_after"],
        )
    except OptionError as error:
        where = f" (queues come from {config.source('queues')})" if "queue" in str(error) else ""
        raise click.UsageError(f"{error}{where}") from error
    app.store.record("node")  # an outdated schema or a store that is away is told before anything starts
    if app.store.url == "memory://":
        session.note("the store is memory://: only this process can enqueue, and all is gone when it ends")
    return node


def alerts_of(config: Config) -> list[Webhook]:
    """Where alerts go; what is wrong with the address is told now, not with the first alert."""
    if config["alert_webhook"] is None:
        return []
    from millpond.node.observability.webhook import Webhook

    return [Webhook(str.__str__(config["alert_webhook"]), allow=config["alert_networks"])]


def _budget(config: Config) -> Resources | None:
    """What the node was told to use; None: what the machine has."""
    from millpond.options import Resources

    if config["memory"] is None and config["cpus"] is None:
        return None
    return Resources(cpu=config["cpus"] or 0.0, memory=config["memory"] or 0)


def _retention(config: Config) -> Retention:
    from millpond.store.protocol import Retention

    kept = {state: config[f"retention_{state}"] for state in ("completed", "cancelled", "dead")}
    return Retention(**kept)


def _serve(session: Session, config: Config, node: Node, page: dict[str, str] | None) -> int:
    from millpond.node.process.foreground import serve

    with _health(config, node) as address:
        return serve(
            node,
            grace=config["grace"],
            reload=lambda: _reload(session, node),
            ready=lambda: _tell(session, config, node, address, page),
        )


def _reload(session: Session, node: Node) -> float:
    """Take over what can change while a node runs; say what cannot. Returns the new grace."""
    before, after = session.config, load(session.flags)
    fixed = [key for key in before.settings if key not in RELOADED and before[key] != after[key]]
    if fixed:
        logger.warning("These settings changed and count from the next start on: %s", ", ".join(fixed))
    logging.getLogger("millpond").setLevel(after["log_level"].upper())
    session.config = Config({**before.settings, **{key: after.settings[key] for key in RELOADED}}, after.file)
    node.monitoring.follow_log_level()
    node.keep(_retention(session.config))
    node.grace = float(after["grace"])
    return node.grace


@contextlib.contextmanager
def _dashboard(session: Session, config: Config, *, is_wanted: bool) -> Iterator[dict[str, str] | None]:
    """The dashboard, if it is wanted; its port is had before the node starts, or the node does not start."""
    if not is_wanted:
        yield None
        return
    from millpond.cli.commands import dashboard as beside
    from millpond.cli.dashboard_process import Sidecar

    if session.app.store.url == "memory://":
        raise Refusal("the store is memory://, which a dashboard cannot see: name a store that lasts")
    listener = beside.listening(config)
    file = beside.token_file(config)
    beside.warn_without_page(session)
    flags = ["--open-metrics"] if session.flags.get("open_metrics") else []
    said = [f"--log-format={config['log_format']}", f"--log-level={config['log_level']}"]
    sidecar = Sidecar(listener, [config["app"], *flags, *said])
    sidecar.start()
    try:
        where = beside.where_the_token_is(config, None if file is None else file.path)
        yield {"dashboard": beside.address_of(listener), "token": where}
    finally:
        sidecar.stop()


@contextlib.contextmanager
def _health(config: Config, node: Node) -> Iterator[str | None]:
    """The health port; it is had before the node starts, or the node does not start."""
    if config["health"] is None:
        yield None
        return
    from millpond.node.health.routes import HealthOptions, check_options
    from millpond.node.health.server import HealthServer

    host, port = health_address(config["health"])
    is_open, names = bool(config["open_metrics"]), config["health_hosts"]
    options = HealthOptions(host, port, config["health_token"], is_open, names)
    server = HealthServer(node.report, check_options(options))
    server.start()
    try:
        host, port = server.address
        yield f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
    finally:
        server.stop()


def _leave_within(seconds: float, code: int) -> None:
    """A thread that the app left running must not keep a node that has stopped."""
    timer = threading.Timer(seconds, os._exit, (code,))
    timer.daemon = True
    timer.start()


# --- what it serves --------------------------------------------------------------------------------------
def _tell(
    session: Session, config: Config, node: Node, address: str | None, page: dict[str, str] | None
) -> None:
    """Say what runs. A reader who has left is no reason not to run it."""
    report, store = node.report(), session.app.store
    document = {
        "node": report.id,
        "pid": report.pid,
        "app": config["app"],
        "store": store.url,
        "durability": report.durability,
        "health": address,
        "dashboard": None if page is None else page["dashboard"],
        "token": None if page is None else page["token"],
        "grace": config["grace"],
        "lease": config["lease"],
        "pools": [_pool_document(pool) for pool in report.pools],
    }
    try:
        session.answer(document, lambda: _page(document, report))
        sys.stdout.flush()
    except (OSError, SystemExit):  # the library that draws tables leaves the program when its pipe breaks
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _pool_document(pool: PoolReport) -> dict[str, Any]:
    return {
        "pool": pool.name,
        "queues": list(pool.queues),
        "kind": pool.kind,
        "workers": [pool.least, pool.most],
        "concurrency": pool.concurrency,
        "max_wait": pool.max_wait,
    }


def _page(document: dict[str, Any], report: NodeReport) -> list[RenderableType]:
    told = ("node", "app", "store", "durability", "health", "dashboard", "token")
    named = [(name, document[name] or OFF) for name in told if name != "token" or document[name]]
    rows = [
        (
            pool.name,
            ", ".join(pool.queues),
            pool.kind,
            f"{pool.least} to {pool.most}",
            pool.concurrency,
            span(pool.max_wait),
        )
        for pool in report.pools
    ]
    columns = ("pool", "queues", "kind", "workers", "jobs in each", "max wait")
    ends = f"Ctrl-C drains within {span(document['grace'])}, again hurries, a third time kills"
    return [facts(named), words(""), table(columns, rows, most=None), words(""), words(ends)]
