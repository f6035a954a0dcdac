"""`millpond dashboard`: the HTTP API and its page as a process of its own, at a lower priority than the jobs.

Listens on loopback unless told otherwise; a public address needs a token that somebody chose. Generated ones
are in a file that only its owner can read. Started by `millpond run --dashboard`, it ends with that process.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import socket
import sys
from collections.abc import Callable
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from millpond.cli.context import Session, shared
from millpond.cli.exit_codes import Refusal
from millpond.cli.output import facts, words
from millpond.config import LEVELS, Config, health_address
from millpond.system.kernel import pidfd_open

if TYPE_CHECKING:
    from millpond.api.options import ApiOptions
    from millpond.api.security.token_file import TokenFile
    from millpond.api.server import Server
    from millpond.rules.http_access import Scope

SWITCH = 0.001  # seconds that a thread which makes a document keeps others from running: they answer requests
NICENESS = 5  # what looks at the work must not take from it
NO_WEB = "the dashboard needs the web extra: pip install 'millpond[web]'"
OPTIONS = ("dashboard", "dashboard_hosts", "trusted_proxies", "open_metrics", "behind_tls")


class Handed(NamedTuple):
    """What a node's process hands to the dashboard it starts."""

    descriptor: int  # of the socket that listens
    parent: int


handed: Handed | None = None  # set by `sidecar.py` in the process that it starts


def web_options(function: Callable[..., None]) -> Callable[..., None]:
    """The options of a command that serves the dashboard."""
    for option in (
        click.option("--behind-tls", is_flag=True, default=None, help="Something before it speaks TLS."),
        click.option("--open-metrics", is_flag=True, default=None, help="Show /metrics without a token."),
        click.option(
            "--host-name",
            "dashboard_hosts",
            multiple=True,
            metavar="NAME",
            help="A name by which the dashboard may be asked; repeatable.",
        ),
        click.option(
            "--trusted-proxy",
            "trusted_proxies",
            multiple=True,
            metavar="ADDRESS",
            help="A proxy whose X-Forwarded-For is believed; repeatable, also a network.",
        ),
        click.option(
            "--listen", "dashboard", metavar="HOST:PORT", help="Where the dashboard is: 127.0.0.1:8640."
        ),
    ):
        function = option(function)
    return function


@click.command("dashboard")
@click.argument("target", metavar="[MODULE:APP]", required=False)
@web_options
@click.option("--show-token", is_flag=True, help="Print the admin token and leave.")
@click.option("--new-tokens", is_flag=True, help="Replace the generated tokens and leave.")
@click.option("--log-format", type=click.Choice(["text", "json"]), help="What log lines look like.")
@click.option("--log-level", type=click.Choice(LEVELS), help="The least important lines to write: info.")
@shared
@click.pass_obj
def command(
    session: Session,
    /,
    *,
    target: str | None,
    show_token: bool,
    new_tokens: bool,
    **flags: Any,
) -> None:
    """Serve the HTTP API and the dashboard, until a signal stops it.

    \b
    millpond dashboard jobs:app
    millpond dashboard --store sqlite:///jobs.db --listen 127.0.0.1:9000

    With an app its tasks can be enqueued and its recurring tasks steered; a store is enough for the rest.
    """  # noqa: D301 - click wants a bare backspace before lines it shall keep
    from millpond.node.observability.logs import on_stderr

    if show_token or new_tokens:
        _tokens(session, renew=new_tokens)
        return
    session.flags["app"] = target if target is not None else session.flags["app"]
    several = {name: flags[name] or None for name in ("dashboard_hosts", "trusted_proxies")}
    session.flags.update(flags, **several)
    config = session.config
    listener = listening(config) if handed is None else socket.socket(fileno=handed.descriptor)
    with contextlib.closing(listener), on_stderr(config["log_format"], config["log_level"]):
        os.nice(NICENESS)
        code = _serve(session, config, listener)
    os._exit(code)  # a thread that waits for a store must not keep a server that has stopped


def _serve(session: Session, config: Config, listener: socket.socket) -> int:
    from millpond.api.app import build
    from millpond.api.server import Server

    session.may_create = True  # it may be started before the first node
    app = session.jobs
    file = token_file(config)
    options = api_options(session, config, listener, file)
    if app.store.url == "memory://":
        raise Refusal("the store is memory://, which only its own process can see: name a store that lasts")
    app.store.record("node")  # an outdated schema or a store that is away is told before anything is served
    if handed is None:  # `millpond run` has warned of it already
        warn_without_page(session)
    tell = partial(_tell, session, config, listener, file) if handed is None else None
    sys.setswitchinterval(SWITCH)
    server = Server(build(app, options), ready=tell)
    asyncio.run(_run(server, listener))
    return 0


async def _run(server: Server, listener: socket.socket) -> None:
    """Serve until a signal, or until the process that started us is gone."""
    loop = asyncio.get_running_loop()
    watched = None
    if handed is not None:
        try:
            watched = pidfd_open(handed.parent)
        except OSError:
            return
        if os.getppid() != handed.parent:
            return
        loop.add_reader(watched, server.handle_exit, signal.SIGTERM, None)
    try:
        await server.serve(sockets=[listener])
    finally:
        if watched is not None:
            loop.remove_reader(watched)
            os.close(watched)


# --- before it starts ------------------------------------------------------------------------------------
def listening(config: Config) -> socket.socket:
    """The socket of the dashboard; refused where strangers could come without a token that somebody chose."""
    try:
        from millpond.api.server import listen
    except ModuleNotFoundError as error:
        raise Refusal(NO_WEB) from error
    from millpond.rules.http_access import is_public

    host, port = health_address(config["dashboard"])
    if is_public(host) and config["dashboard_token"] is None:
        raise click.UsageError(
            f"the dashboard would listen on {host}, where other machines can reach it: "
            "set MILLPOND_DASHBOARD_TOKEN to a token of your own, or listen on 127.0.0.1"
        )
    try:
        return listen(host, port)
    except OSError as error:
        raise click.UsageError(
            f"the dashboard cannot listen on {host}:{port} (from {config.source('dashboard')}): "
            f"{error.strerror or error}; give another with --listen, or port 0 for any"
        ) from error


def warn_without_page(session: Session) -> None:
    """Write a note where there is only the HTTP API to serve."""
    from millpond.web import NOT_BUILT, is_built

    if not is_built():
        session.note(NOT_BUILT)


def token_file(config: Config) -> TokenFile | None:
    """The file with generated tokens; none where somebody has set their own."""
    from millpond.api.security.token_file import TokenFile, default_path

    if config["dashboard_token"] is not None:
        return None
    file = TokenFile(default_path())
    file.ensure()
    return file


def api_options(
    session: Session, config: Config, listener: socket.socket, file: TokenFile | None
) -> ApiOptions:
    """The options of the server, from the settings."""
    from millpond.api.options import ApiOptions
    from millpond.api.security.tokens import token

    host = listener.getsockname()[0]
    keys: tuple[tuple[Scope, str], ...] = (("admin", "dashboard_token"), ("read", "dashboard_read_token"))
    chosen = [token(scope, str.__str__(config[key])) for scope, key in keys if config[key] is not None]
    options = ApiOptions(
        tokens=lambda: [*chosen, *(file() if file is not None else ())],
        host=host,
        hosts=frozenset(name.lower() for name in config["dashboard_hosts"]),
        open_metrics=bool(config["open_metrics"]),
        behind_tls=bool(config["behind_tls"]),
        proxies=tuple(ip_network(name) for name in config["trusted_proxies"]),
        app_name=config["app"],
        knows_tasks=bool(session.jobs.tasks),
        token_file=None if file is None else str(file.path),
        beside=None if handed is None else (socket.gethostname(), handed.parent),
    )
    return options._replace(open_reads=options.only_loopback)


def _tokens(session: Session, *, renew: bool) -> None:
    from millpond.api.security.token_file import TokenFile, default_path

    config = session.config
    if config["dashboard_token"] is not None:
        raise Refusal(
            f"the admin token is set in {config.source('dashboard_token')}, which is what counts: the file "
            "with generated tokens is not used"
        )
    file = TokenFile(default_path())
    if renew:
        file.renew()
    else:
        file.ensure()
    shown = {"admin": file.text("admin"), "read": file.text("read"), "file": str(file.path)}
    session.answer(shown, lambda: [facts(list(shown.items()))])


# --- what it serves --------------------------------------------------------------------------------------
def address_of(listener: socket.socket) -> str:
    """The URL of the page."""
    host, port, *_ = listener.getsockname()
    return f"http://[{host}]:{port}/" if ":" in host else f"http://{host}:{port}/"


def where_the_token_is(config: Config, path: Path | None) -> str:
    """How to find the token, in words."""
    if path is None:
        return f"as set in {config.source('dashboard_token')}"
    return f"`millpond dashboard --show-token` ({path})"


def _tell(session: Session, config: Config, listener: socket.socket, file: TokenFile | None) -> None:
    path = None if file is None else file.path
    document = {
        "dashboard": address_of(listener),
        "store": session.store.url,
        "app": config["app"],
        "token_file": None if path is None else str(path),
    }
    named = [
        ("dashboard", document["dashboard"]),
        ("store", document["store"]),
        ("app", document["app"] or "none: tasks cannot be enqueued from here"),
        ("token", where_the_token_is(config, path)),
    ]
    session.answer(document, lambda: [facts(named), words(""), words("Ctrl-C stops it")])
