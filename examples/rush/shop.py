"""The shop's own things: where its files lie, its photos and orders, and how its work becomes jobs.

Keeps the ledger: every job that the store acknowledged, by its id. It is what the accounts are held against.
"""

from __future__ import annotations

import contextlib
import csv
import random
import sqlite3
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from PIL import Image, ImageDraw

from examples.rush import tasks
from examples.rush.plan import Piece
from millpond import StoreBusy

PHOTOS = 12
COUNTRIES = ("AT", "BE", "CH", "DE", "DK", "ES", "FI", "FR", "IT", "NL", "PL", "SE")
ORDERS = 6000
TRIES = 5


class Shop:
    """A folder with all that the rush reads and writes."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.photos = folder / "photos"
        self.output = {queue: folder / queue for queue in ("images", "pdf", "exports")}
        self.database = folder / "shop.db"
        self.ledger: dict[str, Piece] = {}
        self.ports: dict[str, int] = {}

    def open(self) -> None:
        """Paint the photos and place the orders of the past."""
        for each in (self.photos, *self.output.values()):
            each.mkdir()
        for number in range(PHOTOS):
            paint(self.photos / f"photo-{number:02}.jpg", number)
        (self.photos / "torn.jpg").write_bytes(b"\xff\xd8\xff")
        with contextlib.closing(sqlite3.connect(self.database)) as connection, connection:
            connection.execute("CREATE TABLE orders (number INT, placed TEXT, country TEXT, total REAL)")
            connection.executemany("INSERT INTO orders VALUES (?, ?, ?, ?)", orders())
            connection.execute("CREATE INDEX by_country ON orders (country, placed)")

    # --- work becomes jobs --------------------------------------------------------------------------------
    def enqueue(self, work: Sequence[Piece]) -> None:
        """Store the jobs and write them down; when this returns they are on the disk."""
        for queue, (task, arguments) in self._kinds().items():
            mine = [piece for piece in work if piece.queue == queue]
            if not mine:
                continue
            handles = patiently(task.enqueue_many, [arguments(piece) for piece in mine])
            self.ledger.update(zip((handle.id for handle in handles), mine, strict=True))

    def _kinds(self) -> dict[str, tuple[Any, Callable[[Piece], tuple[Any, ...]]]]:
        return {
            "images": (tasks.resize, self._image),
            "pdf": (tasks.write_invoice, lambda piece: (piece.number, str(self.file(piece)))),
            "exports": (tasks.export_orders, self._export),
            "mail": (tasks.send_receipt, lambda piece: (piece.number, f"127.0.0.1:{self.ports['mail']}")),
            "webhooks": (tasks.notify, self._webhook),
        }

    def _image(self, piece: Piece) -> tuple[str, str, int]:
        name = "torn" if piece.fate == "torn" else f"photo-{piece.number % PHOTOS:02}"
        return str(self.photos / f"{name}.jpg"), str(self.file(piece)), 160 + 40 * (piece.number % 5)

    def _export(self, piece: Piece) -> tuple[str, str, str]:
        country = "everywhere" if piece.fate == "too big" else COUNTRIES[piece.number % len(COUNTRIES)]
        return str(self.database), country, str(self.file(piece))

    def _webhook(self, piece: Piece) -> tuple[int, str]:
        path = "gone" if piece.fate == "gone" else "hooks"
        return piece.number, f"http://127.0.0.1:{self.ports['webhooks']}/{path}/{piece.number}"

    def file(self, piece: Piece) -> Path:
        """What a piece of work must leave behind, if it is a file."""
        ending = {"images": "jpg", "pdf": "pdf", "exports": "csv"}[piece.queue]
        return self.output[piece.queue] / f"{piece.number:06}.{ending}"

    def write_ledger(self) -> Path:
        """For those who want to look for themselves."""
        path = self.folder / "ledger.csv"
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(("job", "number", "queue", "fate"))
            writer.writerows((job, *piece) for job, piece in self.ledger.items())
        return path


def patiently(enqueue_many: Callable[[Any], list[Any]], calls: list[tuple[Any, ...]]) -> list[Any]:
    """StoreBusy says that nothing was stored, since others wrote for seconds on end: it can be done again."""
    for _ in range(TRIES):
        with contextlib.suppress(StoreBusy):
            return enqueue_many(calls)
    return enqueue_many(calls)


def paint(photo: Path, number: int) -> None:
    """Make a photo up: three gradients and some bubbles."""
    dice = random.Random(number)
    size = dice.randrange(1200, 1800), dice.randrange(900, 1400)
    gradient = Image.linear_gradient("L")
    image = Image.merge("RGB", [gradient.rotate(dice.randrange(0, 360, 90)).resize(size) for _ in "RGB"])
    draw = ImageDraw.Draw(image)
    for _ in range(40):
        x, y, r = dice.randrange(size[0]), dice.randrange(size[1]), dice.randrange(10, 160)
        colour = f"hsl({dice.randrange(360)}, 70%, {dice.randrange(40, 80)}%)"
        draw.ellipse((x - r, y - r, x + r, y + r), fill=colour)
    image.save(photo, quality=90)


def orders() -> list[tuple[int, str, str, float]]:
    """What was sold this year."""
    dice = random.Random(0)
    days = [f"2026-{1 + day // 28:02}-{1 + day % 28:02}" for day in range(300)]
    return [
        (number, days[number * 300 // ORDERS], dice.choice(COUNTRIES), round(dice.uniform(5, 500), 2))
        for number in range(ORDERS)
    ]
