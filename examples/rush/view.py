"""What people see: a live table on a terminal, plain lines elsewhere, and the accounts in the end."""

from __future__ import annotations

import sys
import time
from collections import Counter, deque
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.progress_bar import ProgressBar
from rich.table import Table
from rich.text import Text

from examples.rush.accounts import Account, Accounts
from examples.rush.watch import Look, QueueLook

LINE_EVERY = 3.0
RECENT = 6  # events that stay in sight
BAR = 24
WIDE = 116  # columns
LESS_NEEDED = ("to retry", "done")


class View:
    """A live display on a terminal; elsewhere a line for each event and one every few seconds."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.began = time.monotonic()
        self.stage = ""
        self.enqueued = 0
        self._events: deque[Text] = deque(maxlen=RECENT)
        self._line_due = 0.0
        lively = sys.stdout.isatty() and not console.is_dumb_terminal
        self._live = Live(console=console, auto_refresh=False, transient=True) if lively else None

    def __enter__(self) -> Self:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def say(self, event: str, style: str = "") -> None:
        """Something happened."""
        line = Text.assemble((f"{time.monotonic() - self.began:5.1f} s  ", "dim"), (event, style))
        if self._live:
            self._events.append(line)
        else:
            self.console.print(line)

    def show(self, look: Look) -> None:
        """How it goes."""
        if self._live:
            self._live.update(self._page(look), refresh=True)
        elif look.at >= self._line_due:
            self._line_due = look.at + LINE_EVERY
            self.console.print(self._line(look))

    def _line(self, look: Look) -> str:
        parts = ", ".join(
            f"{name} {row.waiting}+{row.running} on {row.workers}" for name, row in look.queues.items()
        )
        return (
            f"{time.monotonic() - self.began:5.1f} s  {look.ended} of {self.enqueued} ended, "
            f"{look.rate:.0f}/s; waiting+running on workers: {parts}"
        )

    def _page(self, look: Look) -> Group:
        head = Text.assemble(
            (f" {self.stage} ", "bold reverse"),
            f"  {time.monotonic() - self.began:4.0f} s   nodes: {' '.join(look.nodes) or 'none'}   ",
            (f"{look.rate:.0f} jobs/s", "bold cyan"),
        )
        bar = Table.grid(padding=(0, 1))
        bar.add_row(
            ProgressBar(total=max(1, self.enqueued), completed=look.ended, width=50),
            f"{look.ended:,} of {self.enqueued:,} jobs ended",
        )
        events = list(self._events) + [Text("")] * (RECENT - len(self._events))
        return Group(head, bar, Text(""), queue_table(look, self.console.width), Text(""), *events)


def queue_table(look: Look, width: int) -> Table:
    """The queues, a row for each; a narrow terminal gets what matters most."""
    bar = BAR if width >= WIDE else 0
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    table.add_column("queue", style="bold")
    table.add_column("depth", width=bar + 7)
    for heading in figures(QueueLook(), is_wide=width >= WIDE):
        table.add_column(heading, justify="right")
    deepest = max(50, *(row.waiting for row in look.queues.values()))
    for name, row in look.queues.items():
        full = round(bar * row.waiting / deepest)
        depth = Text.assemble(("█" * full, "yellow"), " " if full else "", f"{row.waiting:,}")
        table.add_row(name, depth, *figures(row, is_wide=width >= WIDE).values())
    return table


def figures(row: QueueLook, *, is_wide: bool) -> dict[str, str]:
    """The numbers of a row, by their headings."""
    first = {"running": str(row.running), "to retry": str(row.later), "workers": str(row.workers)}
    then = {"done/s": f"{row.rate:.0f}", "done": f"{row.completed:,}", "dead": str(row.dead)}
    last = {"first waits": seconds(row.oldest), "p95 wait": seconds(row.wait)}
    found = {**first, **then, **last}
    return found if is_wide else {name: found[name] for name in found if name not in LESS_NEEDED}


def seconds(value: float | None) -> str:
    """A duration for people."""
    if value is None:
        return "-"
    return f"{1000 * value:.0f} ms" if value < 1 else f"{value:.1f} s"


# --- the end ---------------------------------------------------------------------------------------------
def accounts_table(accounts: Accounts, peaks: Counter[str], depths: Counter[str], width: int) -> Table:
    """What was asked for and what became of it, queue by queue."""
    space = (0, 2 if width >= WIDE else 1, 0, 0)
    table = Table(box=None, padding=space, header_style="dim", show_footer=True, footer_style="bold")
    footers = [*numbers(accounts.total), "", "", str(sum(peaks.values()))]
    headings = ("enqueued", "completed", "retried", "recovered", "dead", "lost")
    table.add_column("queue", footer="all", style="bold", vertical="bottom")
    for heading, footer in zip((*headings, "deepest", "p95\nwait", "peak\nworkers"), footers, strict=True):
        table.add_column(heading, footer=footer, justify="right", vertical="bottom")
    for name, row in accounts.queues.items():
        table.add_row(name, *numbers(row), f"{depths[name]:,}", seconds(row.wait), str(peaks[name]))
    return table


def numbers(row: Account) -> list[str]:
    """The counts of a row, the lost in red if there are any."""
    lost = f"[bold red]{row.lost}[/]" if row.lost else "[green]0[/]"
    counts = (row.enqueued, row.completed, row.retried, row.recovered, row.dead)
    return [*(f"{count:,}" for count in counts), lost]


def deaths_table(accounts: Accounts) -> Table:
    """Who ended dead, and why."""
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for heading in ("dead", "task", "reason", "why"):
        table.add_column(heading, justify="right" if heading == "dead" else "left", no_wrap=heading != "why")
    for death in accounts.deaths:
        row = (str(death.jobs), death.task, death.reason, death.message)
        table.add_row(*(Text(cell) for cell in row))
    return table
