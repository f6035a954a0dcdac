"""The command `millpond`: a group whose commands are imported when they are used.

Nothing heavy is loaded here, so that `millpond --help` answers at once. Every error becomes one line on
stderr and an exit code; a traceback is shown only when it is asked for.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Sequence
from typing import Any

import click

# name: what --help says. The command is `command` in the module of the same name.
COMMANDS = {
    "run": "Run jobs: a node with a pool for every queue.",
    "dashboard": "Serve the HTTP API and the dashboard.",
    "top": "Watch the fleet in a terminal.",
    "enqueue": "Store a job.",
    "jobs": "List, show, explain and cancel jobs.",
    "queues": "List queues; pause, resume, limit them.",
    "dead": "List, replay and discard dead jobs.",
    "recurring": "Look at recurring tasks; trigger, enable, disable them.",
    "pools": "List the pools of all nodes; set other bounds.",
    "nodes": "List nodes with their leases; drain one.",
    "simulate": "Replay a workload through a scaling policy.",
    "migrate": "Create or update the store's schema.",
    "check": "Check the app and its store.",
    "config": "Show every setting and where it came from.",
    "prune": "Delete jobs that ended long ago.",
}

EXIT_CODES = """\b
Exit codes:
   0  it worked; for `run`: it was told to stop, and drained
   1  it failed
   2  wrong usage: an option or an argument
   3  a wrong setting in a file or a variable
  69  the store cannot be reached
  75  the store is busy, or the outcome is unknown; try again
 130  stopped by Ctrl-C; 128 + signal when one cut `run` short
"""


class Millpond(click.Group):
    """The group; also the one place where errors end."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        """In the order people need them."""
        return list(COMMANDS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a command."""
        if cmd_name not in COMMANDS:
            return None
        command = importlib.import_module(f"millpond.cli.commands.{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, or name the nearest one."""
        if args and args[0] not in COMMANDS:
            from millpond.options import nearest

            ctx.fail(f"there is no command {args[0]!r}{nearest(args[0], COMMANDS)}")
        return super().resolve_command(ctx, args)

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """List commands without importing them."""
        with formatter.section("Commands"):
            formatter.write_dl(list(COMMANDS.items()))

    def main(self, args: Sequence[str] | None = None, *rest: Any, **extra: Any) -> Any:
        """Run, and leave with an exit code."""
        extra["standalone_mode"] = False
        given = list(sys.argv[1:] if args is None else args)
        try:
            code = super().main(given, *rest, **extra)
        except BaseException as error:
            from millpond.cli.exit_codes import report

            code = report(error, debug="--debug" in given)
        sys.exit(code if isinstance(code, int) else 0)


@click.group(
    cls=Millpond,
    invoke_without_command=True,
    epilog=EXIT_CODES,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 110},
)
@click.option("--app", metavar="MODULE:ATTR", help="The app, such as jobs:app.")
@click.option("--store", metavar="URL", help="The store, such as sqlite:///jobs.db.")
@click.option("--json", "as_json", is_flag=True, help="Print one JSON document.")
@click.option("--debug", is_flag=True, expose_value=False, help="Show the traceback of an error.")
@click.version_option(package_name="millpond", message="millpond %(version)s")
@click.pass_context
def main(context: click.Context, app: str | None, store: str | None, as_json: bool) -> None:
    """Keep background jobs safe and look after them.

    Every command takes --app, --store, --json and --debug, before or after its name. Without them the
    settings come from MILLPOND_* variables, then from millpond.toml or [tool.millpond] in pyproject.toml.
    """
    if context.invoked_subcommand is None:
        click.echo(context.get_help())
        return
    from millpond.cli.context import Session

    context.obj = Session(app, store, as_json=as_json)
    context.call_on_close(context.obj.close)
