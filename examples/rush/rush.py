"""The demonstration as a program: sets everything up, runs the rush, prints the accounts.

Exits with 0 only if no job was lost, by evidence from outside the store. Interrupted, it leaves nothing
behind: no process and no file.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import random
import shlex
import shutil
import signal
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console

if TYPE_CHECKING:
    from examples.rush.accounts import Accounts
    from examples.rush.noon import Noon

SHORTEST = 5.0
LEASE = 15.0  # the default
OPENING = """\
[bold]A shop's noon rush[/]: thumbnails, invoices, exports, receipts by e-mail and
webhooks, in five pools, on two nodes that share one SQLite file. Meanwhile
workers are killed, and a whole node; servers refuse some messages at first;
some jobs crash whoever runs them. Nothing may be lost.
[dim]Takes about {seconds:.0f} s once photos, orders, servers and nodes are there.
Files: {folder}[/]
"""
LEGEND = "[dim]retried: failed, ran again; recovered: its worker or node died, ran again[/]\n"


def main() -> int:
    """Run the demonstration and return the exit code."""
    options = read_arguments()
    console = Console(
        highlight=False, width=None if sys.stdout.isatty() else 140, soft_wrap=not sys.stdout.isatty()
    )
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, lambda number, _: sys.exit(128 + number))
    try:
        with working_folder(options.folder) as folder:
            os.environ["MILLPOND_STORE"] = f"sqlite:///{folder / 'jobs.db'}"  # before the app is imported
            console.print(OPENING.format(seconds=options.seconds, folder=folder))
            return run(console, folder, options)
    except KeyboardInterrupt:
        console.print("Interrupted: no process and no file is left.")
        return 130


def run(console: Console, folder: Path, options: argparse.Namespace) -> int:
    """The whole of it, in a folder of its own."""
    from examples.rush import tasks
    from examples.rush.accounts import settle_accounts
    from examples.rush.fleet import Fleet
    from examples.rush.noon import ENDING, Noon
    from examples.rush.shop import Shop
    from examples.rush.view import View
    from examples.rush.watch import Watch

    shop, dice = Shop(folder), random.Random(options.seed)
    # A node may rescue another once it has kept its own lease for as long as one lasts: a short rush needs
    # a short one.
    lease = max(2.0, min(LEASE, options.seconds / 4))
    with Fleet(folder, dice, lease) as fleet, View(console) as view:
        shop.open()
        fleet.start_sinks()
        shop.ports = fleet.ports
        for node in [fleet.start_node(), fleet.start_node()]:
            node.wait_until_ready(len(tasks.QUEUES))
        began = view.began = time.monotonic()
        noon = Noon(shop, fleet, Watch(tasks.app.store, fleet, tasks.QUEUES), view)
        if not options.jobs:
            noon.calibrate()
        length = max(SHORTEST, options.seconds - ENDING - (time.monotonic() - began))
        moved = noon.rush(options.jobs, length)
        took = time.monotonic() - began
        view.say("all jobs have ended: the nodes drain" if moved else "giving up: the nodes drain")
        fleet.drain()
        accounts = settle_accounts(shop, tasks.app.store, tasks.QUEUES)
        left = fleet.left()
    shop.write_ledger()
    tasks.app.store.close()
    return conclude(console, accounts, noon, took, left)


def conclude(console: Console, accounts: Accounts, noon: Noon, took: float, left: list[int]) -> int:
    """Print the accounts; returns the exit code."""
    from examples.rush.view import accounts_table, deaths_table

    total, fleet = accounts.total, noon.fleet
    repeated, rescued = total.repeated, sum(node.rescued for node in fleet.nodes)
    console.print(accounts_table(accounts, noon.watch.peaks, noon.watch.depths, console.width))
    console.print(LEGEND)
    console.print(deaths_table(accounts))
    drained = ", ".join(map(str, fleet.exit_codes.values()))
    console.print(
        f"\nKilled on purpose: {noon.killed_workers} workers and {noon.killed_nodes} of {len(fleet.nodes)} "
        f"nodes. Jobs rescued from it: {rescued:.0f}.\n"
        f"The other nodes drained and ended with {drained}; processes left: {len(left)}.\n"
        f"Sent twice, as their sender was killed before it could tell: {repeated} messages."
    )
    for sentence in accounts.lost[:10]:
        console.print(f"  [bold red]LOST[/] {sentence}")
    verdict = (
        f"[bold red]{total.lost} jobs are lost.[/]"
        if total.lost
        else "[bold green]No job was lost[/]: each has its file, its line in a server's book,\n"
        "or its cause of death."
    )
    console.print(f"\n{verdict} ({took:.0f} s)")
    console.print(where_to_look(noon, accounts))
    return 0 if not total.lost and not left and not any(fleet.exit_codes.values()) else 1


def where_to_look(noon: Noon, accounts: Accounts) -> str:
    """Commands that can be pasted, and files."""
    folder = noon.shop.folder
    program = Path(sys.executable).with_name("millpond")
    if program.exists() and program.is_relative_to(Path.cwd()):
        program = program.relative_to(Path.cwd())
    command, store = shlex.quote(str(program)), shlex.quote(f"sqlite:///{folder}/jobs.db")
    lines = ["", "[dim]Look for yourself:[/]", f"  export MILLPOND_STORE={store}"]
    lines += [f"  {command} queues", f"  {command} jobs", f"  {command} dead"]
    if accounts.deaths:
        lines.append(f"  {command} dead show {accounts.deaths[-1].example}")
    lines += [
        f"  {folder}",
        "    images, pdf, exports: what was made; mail.log, webhooks.log: what the",
        "    servers received; ledger.csv: every job; node-1.log and so on.",
        "    Delete the folder when you have seen enough.",
        "  examples/rush/tasks.py: the tasks and their pools",
    ]
    return "\n".join(lines)


@contextlib.contextmanager
def working_folder(wanted: Path | None) -> Iterator[Path]:
    """A new folder, which stays when the rush has ended and vanishes when it was interrupted."""
    if wanted is None:
        folder = Path(tempfile.mkdtemp(prefix="millpond-rush-"))
    else:
        folder = wanted.resolve()
        folder.mkdir(parents=True, exist_ok=True)
    try:
        yield folder
    except BaseException:
        shutil.rmtree(folder, ignore_errors=True)
        raise


def read_arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m examples.rush", description="A noon rush on Millpond.")
    parser.add_argument(
        "--seconds", type=float, default=60.0, metavar="S", help="about how long (default: %(default)g)"
    )
    parser.add_argument("--jobs", type=int, metavar="N", help="so many, instead of what the machine can do")
    parser.add_argument("--folder", type=Path, metavar="FOLDER", help="a new or an empty one for all files")
    parser.add_argument(
        "--seed", type=int, default=None, metavar="N", help="who is killed (default: by chance)"
    )
    options = parser.parse_args()
    if options.seconds < SHORTEST:
        parser.error(f"--seconds starts at {SHORTEST:g}")
    if options.jobs is not None and options.jobs < 50:
        parser.error("--jobs starts at 50")
    if (
        options.folder
        and options.folder.exists()
        and (not options.folder.is_dir() or any(options.folder.iterdir()))
    ):
        parser.error(f"--folder needs a new or an empty folder; {options.folder} is neither")
    return options
