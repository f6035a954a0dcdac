"""The two boxes that come up over the tables: a question to be answered, and everything about one row.

Both show text of unknown origin, and show it as text: never as markup.
"""

from __future__ import annotations

import json
from typing import Any, ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Vertical, VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Static

from millpond.cli.output import safe
from millpond.tui.tables import Row

LONGEST_VALUE = 4_000
BACK = "Esc: back"


class Question(ModalScreen[bool]):
    """Yes only by `y`: whatever else is pressed in haste does nothing."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("y", "answer(True)", "Yes"),
        ("n", "answer(False)", "No"),
        ("escape", "answer(False)", "No"),
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """A box with the question."""
        with Vertical(classes="box"):
            yield Static(Text(safe(self._question, 1_000)))
            yield Static(Text("\ny yes    n no", style="bold"))

    def action_answer(self, answer: bool) -> None:
        """Leave with the answer."""
        self.dismiss(answer)


class Details(ModalScreen[None]):
    """A row in full."""

    BINDINGS: ClassVar[list[BindingType]] = [
        ("escape", "dismiss", "Back"),
        ("enter", "dismiss", "Back"),
        ("q", "dismiss", "Back"),
    ]

    def __init__(self, row: Row) -> None:
        super().__init__()
        self._text = _everything(row)

    def compose(self) -> ComposeResult:
        """A box that can be scrolled."""
        with VerticalScroll(classes="box") as box:
            box.border_subtitle = BACK
            yield Static(self._text)


class Help(ModalScreen[None]):
    """The keys."""

    BINDINGS: ClassVar[list[BindingType]] = Details.BINDINGS

    def __init__(self, text: str) -> None:
        super().__init__()
        self._text = text

    def compose(self) -> ComposeResult:
        """A box that can be scrolled."""
        with VerticalScroll(classes="box") as box:
            box.border_subtitle = BACK
            yield Static(Text(self._text))


def _everything(row: Row) -> Text:
    found = Text()
    for name, value in row.item.items():
        said = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        found.append(f"{safe(name, 40)}: ", style="bold")
        found.append(f"{safe(_cut(said), lines=True)}\n")
    return found


def _cut(value: Any) -> str:
    return str(value)[:LONGEST_VALUE]
