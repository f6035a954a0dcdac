"""The screen: a line of totals, tabs, one table, the keys. Shows what the watching thread has seen.

Looks at what is known a few times a second and never waits for the store. All text is rich Text, never
markup: what jobs say cannot colour, link or steer anything.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, ClassVar

from rich.text import Text
from textual.app import App as Application
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.widgets import DataTable, Footer, Input, Static

from millpond.cli.output import safe
from millpond.tui import actions
from millpond.tui.cells import BAD, QUIET, WARN
from millpond.tui.dialogs import Details, Help, Question
from millpond.tui.poller import Sight, Watching
from millpond.tui.summary import alert_lines, store_line, totals_line
from millpond.tui.table_widget import Listing
from millpond.tui.tables import TABS

if TYPE_CHECKING:
    from millpond.app import App

REDRAW = 0.25  # seconds between two looks at what the thread has seen
NAMES = tuple(tab.name for tab in TABS)
ONLY_ON = {  # what can be done, and where
    "turn_queue": {"queues"},
    "replay": {"queues", "dead"},
    "drain": {"nodes"},
    "recycle": {"workers"},
    "trigger": {"recurring"},
    "turn_recurring": {"recurring"},
}
HELP = """millpond top

1 to 8, Tab      another table
up, down, PgUp   another row; left and right where a table is wider than the screen
Enter            everything about a row
< and >          sort by the next column; i turns the order round
/                show only rows with a text; Esc shows all again
q                leave

What can be done depends on the table; every change is asked about first.
p  queues     pause or resume the queue
r  queues     run its dead jobs again
r  dead       run the dead jobs of that task in that queue again
d  nodes      drain: finish, give back the rest, stop
c  workers    replace the worker once what it runs has ended
t  recurring  run the task now
e  recurring  disable or enable the task
"""


class Top(Application[None]):
    """`millpond top`."""

    ENABLE_COMMAND_PALETTE = False
    TITLE = "millpond top"
    CSS = """
    #summary { height: 3; text-wrap: nowrap; text-overflow: ellipsis; }
    #tabs { height: 1; text-wrap: nowrap; }
    #empty { padding: 1 2; display: none; }
    #filter { dock: bottom; display: none; border: none; height: 1; padding: 0; }
    DataTable { height: 1fr; }
    .datatable--header { background: ansi_default; color: ansi_default; text-style: bold underline; }
    .datatable--cursor { background: ansi_default; color: ansi_default; text-style: reverse; }
    ModalScreen { align: center middle; }
    .box { width: 90%; max-width: 100; height: auto; max-height: 90%; border: round $primary; padding: 0 1; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q", "quit", "Quit"),
        *(Binding(str(number), f"show({name!r})", show=False) for number, name in enumerate(NAMES, 1)),
        Binding("tab", "turn(1)", "Next", priority=True),
        Binding("shift+tab", "turn(-1)", show=False, priority=True),
        Binding("less_than_sign", "sort(-1)", "<", key_display="<", show=False),
        Binding("greater_than_sign", "sort(1)", "Sort", key_display="<>"),
        Binding("i", "invert", "Invert"),
        Binding("slash", "filter", "Filter", key_display="/"),
        Binding("escape", "unfilter", show=False),
        Binding("p", "turn_queue", "Pause/resume"),
        Binding("r", "replay", "Replay"),
        Binding("d", "drain", "Drain"),
        Binding("c", "recycle", "Recycle"),
        Binding("t", "trigger", "Trigger"),
        Binding("e", "turn_recurring", "On/off"),
        Binding("question_mark", "help", "Help", key_display="?"),
    ]

    def __init__(self, app: App, watching: Watching) -> None:
        super().__init__()
        self.theme = "ansi-dark"  # the terminal's own colours, light or dark
        self._jobs = app
        self._watching = watching
        self._lines: dict[str, Text] = {}  # what stands above and below the table
        self.listing = Listing()

    def compose(self) -> ComposeResult:
        """The parts, from top to bottom."""
        yield Static(id="summary")
        yield Static(id="tabs")
        yield DataTable(cursor_type="row", cell_padding=0, zebra_stripes=False)
        yield Static(id="empty")
        yield Input(id="filter", placeholder="rows with this text", select_on_focus=False)
        yield Footer(show_command_palette=False, compact=True)

    def on_mount(self) -> None:
        """Begin to draw."""
        self.query_one(DataTable).focus()
        self._draw()
        self.set_interval(REDRAW, self._draw)

    # --- drawing ------------------------------------------------------------------------------------------
    def _draw(self) -> None:
        if not self.screen_stack or len(self.screen_stack[0].query("#summary, #tabs, #empty, DataTable")) < 4:
            return  # the screen is being taken down
        for said in self._watching.news():
            level = "information" if said.is_well else "error"
            self.notify(safe(said.text, 300), severity=level, markup=False, timeout=6)  # type: ignore[arg-type]
        sight = self._watching.sight()
        self._draw_summary(sight)
        self.listing.draw(sight.view, self.screen_stack[0].query_one(DataTable), self.size.width)
        self._put("tabs", self._tabs())
        empty = self.listing.empty if sight.view is not None else ""
        self._put("empty", Text(empty, style=QUIET)).display = bool(empty)

    def _put(self, name: str, text: Text) -> Static:
        """Draw only what changed: the line to the terminal may be slow."""
        place = self.screen_stack[0].query_one(f"#{name}", Static)
        if self._lines.get(name) != text or self._lines[name].spans != text.spans:
            self._lines[name] = text
            place.update(text)
        return place

    def _tabs(self) -> Text:
        line = Text(no_wrap=True)
        for number, tab in enumerate(TABS, 1):
            line.append("  " if number > 1 else "")
            line.append(f"{number} {tab.title}", style="reverse" if tab is self.listing.tab else "")
        return line

    def _draw_summary(self, sight: Sight) -> None:
        line, is_well = store_line(sight, time.time())
        lines = Text(no_wrap=True, overflow="ellipsis")
        lines.append("millpond top  ", style="bold")
        lines.append(f"{line}\n", style="" if is_well else BAD)
        if sight.view is not None:
            lines.append(f"{totals_line(sight.view)}\n")
            alerts = list(alert_lines(sight.view))
            if alerts:
                more = f"  (and {len(alerts) - 1} more)" if len(alerts) > 1 else ""
                lines.append(f"{alerts[0]}{more}", style=BAD if alerts[0].startswith("!!") else WARN)
            elif is_well:
                lines.append("all is well", style=QUIET)
        self._put("summary", lines)

    # --- moving about -------------------------------------------------------------------------------------
    def action_show(self, name: str) -> None:
        """The table of that name."""
        self.listing.show(name)
        self.refresh_bindings()
        self._draw()

    def action_turn(self, step: int) -> None:
        """The next table, or the one before."""
        self.action_show(NAMES[(NAMES.index(self.listing.tab.name) + step) % len(NAMES)])

    def action_sort(self, step: int) -> None:
        """Sort by the next column, or the one before."""
        self.listing.sort(step)
        self._draw()

    def action_invert(self) -> None:
        """Turn the order round."""
        self.listing.invert()
        self._draw()

    def action_filter(self) -> None:
        """Ask for a text that rows must have."""
        box = self.query_one("#filter", Input)
        box.display = True
        box.value = self.listing.wanted
        box.focus()

    def on_input_changed(self, event: Input.Changed) -> None:
        """Show while it is being typed."""
        self.listing.wanted = event.value
        self._draw()

    def on_input_submitted(self) -> None:
        """Keep it."""
        box = self.query_one("#filter", Input)
        box.display = bool(box.value)
        self.query_one(DataTable).focus()

    def action_unfilter(self) -> None:
        """Show all rows again."""
        box = self.query_one("#filter", Input)
        box.value = ""
        box.display = False
        self.query_one(DataTable).focus()

    def on_data_table_row_selected(self) -> None:
        """Everything about a row."""
        row = self.listing.row(self.query_one(DataTable))
        if row is not None:
            self.push_screen(Details(row))

    def action_help(self) -> None:
        """The keys."""
        self.push_screen(Help(HELP))

    # --- doing --------------------------------------------------------------------------------------------
    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """Only what makes sense here; nothing while a box is open."""
        if len(self.screen_stack) > 1:
            return action in ("answer", "dismiss")
        if action in ONLY_ON:
            return self.listing.tab.name in ONLY_ON[action]
        return True

    def _ask(self, deed: actions.Deed) -> None:
        def answered(is_yes: bool | None) -> None:
            if is_yes and not self._watching.do(deed.do):
                self.notify("wait: earlier changes are still under way", severity="warning", markup=False)

        self.push_screen(Question(deed.question), answered)

    def action_turn_queue(self) -> None:
        """Pause the queue, or resume it."""
        if row := self.listing.row(self.query_one(DataTable)):
            self._ask(actions.turn_queue(self._jobs, row.item))

    def action_replay(self) -> None:
        """Run dead jobs again: of the queue, or of a task in it."""
        if row := self.listing.row(self.query_one(DataTable)):
            task = row.item["task"] if self.listing.tab.name == "dead" else None
            self._ask(actions.replay(self._jobs, row.item["queue"], task))

    def action_drain(self) -> None:
        """Have the node finish and stop."""
        if row := self.listing.row(self.query_one(DataTable)):
            if row.item["state"] == "live":
                self._ask(actions.drain(self._jobs, row.item))
            else:
                self.notify("its lease has run out: it does not answer", severity="warning", markup=False)

    def action_recycle(self) -> None:
        """Have the worker replaced."""
        if row := self.listing.row(self.query_one(DataTable)):
            self._ask(actions.recycle(self._jobs, row.item))

    def action_trigger(self) -> None:
        """Run the recurring task now."""
        if row := self.listing.row(self.query_one(DataTable)):
            self._ask(actions.trigger(self._jobs, row.item))

    def action_turn_recurring(self) -> None:
        """Disable the recurring task, or enable it."""
        if row := self.listing.row(self.query_one(DataTable)):
            self._ask(actions.turn_recurring(self._jobs, row.item))
