"""`millpond top`: how the fleet stands, live in a terminal; or once, as tables or JSON."""

from __future__ import annotations

import os
import sys
import threading

import click

from millpond.cli.context import Session, shared
from millpond.cli.exit_codes import Refusal

NO_TUI = "the screen needs the tui extra: pip install 'millpond[tui]'; `millpond top --once` works without it"
LEAVING = 2.0  # seconds that a store which does not answer may take once the screen is gone


@click.command("top")
@click.option("--once", is_flag=True, help="Print how things stand now, and leave.")
@shared
@click.pass_obj
def command(session: Session, *, once: bool) -> None:
    """Watch the fleet in a terminal.

    Queues, pools, workers, nodes, dead jobs and recurring tasks, live; pause, replay and drain by keys.
    """
    app = session.jobs
    if app.store.url == "memory://":
        raise Refusal("the store is memory://, which only its own program can see: name a store that lasts")
    from millpond.tui.snapshot import Looking

    looking = Looking(app, app_name=session.config["app"])
    if once or session.as_json:
        from millpond.tui.once import document, page

        view = looking.look()
        session.answer(document(view), lambda: page(view))
        return
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise click.UsageError("there is no terminal to draw on: say --once or --json")
    try:
        from millpond.tui.screen import Top
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] != "textual":
            raise
        raise Refusal(NO_TUI) from None
    from millpond.tui.poller import Watching

    watching = Watching(looking)
    watching.start()
    Top(app, watching).run(mouse=False)  # so that the terminal's own selecting and copying works
    if not watching.stop():
        timer = threading.Timer(LEAVING, os._exit, (0,))
        timer.daemon = True
        timer.start()
