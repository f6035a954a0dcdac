"""The table on the screen: which tab, in which order, with which rows; and drawing it with the least change.

The cursor stays on its row while rows come, go and change places. Cells are changed where they stand as long
as the same rows stand in the same order.
"""

from __future__ import annotations

from typing import NamedTuple

from rich.text import Text
from textual.widgets import DataTable

from millpond.tui.snapshot import View
from millpond.tui.tables import TABS, Row, Tab, ordered, widths

MOST = 500  # rows that are drawn; a filter finds the others


class Order(NamedTuple):
    """How one tab is sorted."""

    column: int
    falling: bool


class Listing:
    """What the table shows."""

    def __init__(self) -> None:
        self.tab: Tab = TABS[0]
        self.wanted = ""
        self.rows: list[Row] = []
        self.empty = ""
        self._orders = {tab.name: Order(tab.sort, tab.falling) for tab in TABS}
        self._view: View | None = None  # what is drawn, and how
        self._asked: tuple[object, ...] = ()
        self._layout: tuple[object, ...] = ()
        self._keys: list[str] = []
        self._cells: list[list[Text]] = []

    def show(self, name: str) -> None:
        """Another tab."""
        self.tab = next(tab for tab in TABS if tab.name == name)

    @property
    def order(self) -> Order:
        """How the tab is sorted."""
        return self._orders[self.tab.name]

    def sort(self, step: int) -> None:
        """By another column: numbers the largest first, names from A."""
        column = (self.order.column + step) % len(self.tab.columns)
        self._orders[self.tab.name] = Order(column, self.tab.columns[column].kind == "number")

    def invert(self) -> None:
        """The other way round."""
        self._orders[self.tab.name] = self.order._replace(falling=not self.order.falling)

    def row(self, table: DataTable[Text]) -> Row | None:
        """The row under the cursor."""
        return self.rows[table.cursor_row] if 0 <= table.cursor_row < len(self.rows) else None

    # --- drawing ------------------------------------------------------------------------------------------
    def draw(self, view: View | None, table: DataTable[Text], room: int) -> None:
        """Have the table show the view."""
        order = self.order
        asked = (self.tab.name, order, self.wanted, room)
        if view is self._view and asked == self._asked:
            return
        self._view, self._asked = view, asked
        found = [] if view is None else self.tab.rows(view)
        self.rows = ordered(found, order.column, falling=order.falling, wanted=self.wanted)[:MOST]
        self.empty = "" if self.rows else "No row has this text." if found else self.tab.empty
        sizes = widths(self.tab.columns, self.rows, room - 2)
        layout = (self.tab.name, order, tuple(sizes))
        cells = [self._line(row, sizes) for row in self.rows]
        keys = [row.key for row in self.rows]
        if layout == self._layout and keys == self._keys:
            self._change(table, cells)
        else:
            self._rebuild(table, sizes, cells, keys)
        self._layout, self._keys, self._cells = layout, keys, cells

    def _line(self, row: Row, sizes: list[int]) -> list[Text]:
        line = []
        for column, cell, size in zip(self.tab.columns, row.cells, sizes, strict=True):
            text = Text(cell.text, style=cell.style, no_wrap=True)
            text.truncate(size, overflow="ellipsis")
            if column.kind == "number":
                text.pad_left(size - text.cell_len)
            line.append(text)
        return line

    def _change(self, table: DataTable[Text], cells: list[list[Text]]) -> None:
        for place, (old, new) in enumerate(zip(self._cells, cells, strict=True)):
            for column, (before, after) in enumerate(zip(old, new, strict=True)):
                if before.plain != after.plain or before.style != after.style:
                    table.update_cell_at((place, column), after)  # type: ignore[arg-type]

    def _rebuild(
        self, table: DataTable[Text], sizes: list[int], cells: list[list[Text]], keys: list[str]
    ) -> None:
        is_same_tab = self._layout[:1] == (self.tab.name,)
        at = self._keys[table.cursor_row] if is_same_tab and table.cursor_row < len(self._keys) else None
        left, above = (table.scroll_x, table.scroll_y) if is_same_tab else (0.0, 0.0)
        table.clear(columns=True)
        for place, (column, size) in enumerate(zip(self.tab.columns, sizes, strict=True)):
            table.add_column(self._title(place, column.title, size, column.kind), width=size + 1)
        for line in cells:
            table.add_row(*line)
        if at in keys:
            table.move_cursor(row=keys.index(at), scroll=False)
        table.scroll_to(left, above, animate=False, force=True)

    def _title(self, place: int, title: str, size: int, kind: str) -> Text:
        mark = ("▼" if self.order.falling else "▲") if place == self.order.column else ""
        text = Text(f"{title}{mark}", no_wrap=True)
        text.truncate(size, overflow="ellipsis")
        if kind == "number":
            text.pad_left(size - text.cell_len)
        return text
