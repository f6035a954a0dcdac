"""What a shop does in the background: thumbnails, invoices, receipts, webhooks and exports, each in its pool.

Millpond delivers at least once, so each task may run again after a crash: files are put in place whole, and
messages carry the number of their order, by which a receiver knows a second copy.
"""

from __future__ import annotations

import asyncio
import contextlib
import csv
import ctypes
import json
import os
import resource
import signal
import smtplib
import sqlite3
from collections.abc import Iterator
from email.message import EmailMessage
from pathlib import Path
from urllib.parse import urlsplit

from PIL import Image, ImageDraw, ImageOps
from reportlab.lib.pagesizes import A4  # type: ignore[import-untyped]
from reportlab.lib.utils import ImageReader  # type: ignore[import-untyped]
from reportlab.pdfgen.canvas import Canvas  # type: ignore[import-untyped]

from millpond import App, Retry

QUEUES = ("images", "pdf", "exports", "mail", "webhooks")
SOON = Retry(attempts=6, first="1s", cap="3s")
PATIENCE = 10.0  # seconds for a server to answer

app = App(name="rush")  # its store comes from MILLPOND_STORE
# Work that needs a core: processes. Work that waits for others: many at once in a worker, never starved.
app.pool("images", workers=(1, 4), max_wait="20s", idle_timeout="3s")
app.pool("pdf", workers=(1, 3), max_wait="20s", idle_timeout="3s")
app.pool("exports", workers=(1, 2), max_wait="30s", idle_timeout="3s")
app.pool("mail", workers=(1, 2), kind="thread", concurrency=8, max_wait="5s", idle_timeout="3s")
app.pool("webhooks", workers=(1, 2), kind="async", concurrency=50, max_wait="5s", idle_timeout="3s")


class Gone(Exception):
    """The receiver says that it will never take this: trying again is of no use."""


class Refused(Exception):
    """The receiver says: not now."""


# --- work that needs a core ------------------------------------------------------------------------------
@app.task(queue="images", timeout=30, retry=SOON)
def resize(photo: str, thumbnail: str, width: int) -> int:
    """Make a thumbnail; returns its size in bytes."""
    if Path(photo).stem == "torn":
        segfault()
    with Image.open(photo) as image, in_place(thumbnail) as part:
        image.draft("RGB", (2 * width, 2 * width))
        ImageOps.contain(image, (width, width)).save(part, "JPEG", quality=85)
        return part.stat().st_size


@app.task(queue="pdf", timeout=30, retry=SOON)
def write_invoice(order: int, pdf: str) -> None:
    """Write the invoice of an order."""
    with in_place(pdf) as part:
        page = Canvas(str(part), pagesize=A4)
        page.setFont("Helvetica-Bold", 20)
        page.drawString(60, 760, f"Invoice {order:06}")
        page.setFont("Helvetica", 10)
        for line in range(1, 3 + order % 20):
            page.drawString(60, 720 - 20 * line, f"{line} x article {order * 7 + line}")
            page.drawRightString(530, 720 - 20 * line, f"{9.9 * line:.2f} €")
        page.drawImage(ImageReader(stamp(order)), 430, 740, 100, 50)
        page.save()


def stamp(order: int) -> Image.Image:
    """Bars from which a scanner reads the number of the order."""
    image = Image.new("L", (400, 200), 255)
    draw = ImageDraw.Draw(image)
    for place in range(32):
        if (order * 2_654_435_761 >> place) & 1:
            draw.rectangle((12 * place + 8, 0, 12 * place + 16, 199), fill=0)
    return image


@app.task(queue="exports", timeout=30, retry=SOON)
def export_orders(shop: str, country: str, table: str) -> int:
    """Write the orders of a country as CSV; returns how many."""
    if country == "everywhere":  # more than fits in memory: this is what the kernel does about it
        os.kill(os.getpid(), signal.SIGKILL)
    with contextlib.closing(sqlite3.connect(f"file:{shop}?mode=ro", uri=True)) as connection:
        rows = connection.execute("SELECT * FROM orders WHERE country = ? ORDER BY placed", (country,))
        with in_place(table) as part, part.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow([column[0] for column in rows.description])
            writer.writerows(found := rows.fetchall())
    return len(found)


def segfault() -> None:
    """A codec that reads where it should not."""
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # leave no core file on the machine of who tries this
    ctypes.string_at(0)


@contextlib.contextmanager
def in_place(path: str) -> Iterator[Path]:
    """A file to write, which gets its name only when it is whole: a worker may be killed at any moment."""
    part = Path(f"{path}.{os.getpid()}.part")
    yield part
    part.replace(path)


# --- work that waits for others --------------------------------------------------------------------------
@app.task(queue="mail", timeout=30, retry=SOON)
def send_receipt(order: int, server: str) -> None:
    """Send a receipt by e-mail. A server that is busy answers 4xx, which raises, and it is tried again."""
    message = EmailMessage()
    message["From"] = "shop@rush.example"
    message["To"] = f"customer-{order}@rush.example"
    message["Subject"] = f"Your order {order:06}"
    message["Message-ID"] = f"<{order}@rush.example>"
    message.set_content(f"Thank you. Your order {order:06} is on its way.\n")
    host, _, port = server.rpartition(":")
    with smtplib.SMTP(host, int(port), "shop.rush.example", PATIENCE) as client:
        client.send_message(message)


@app.task(queue="webhooks", timeout=30, retry=Retry(attempts=6, first="1s", cap="3s", never=(Gone,)))
async def notify(order: int, url: str) -> None:
    """Tell a partner's server about an order."""
    async with asyncio.timeout(PATIENCE):
        status = await post(url, {"event": "order.placed", "order": order})
    if status == 410:
        raise Gone(f"{urlsplit(url).path} answered 410: the receiver is gone for good")
    if status >= 300:
        raise Refused(f"{urlsplit(url).path} answered {status}")


async def post(url: str, document: object) -> int:
    """POST a document as JSON; returns the status."""
    address, body = urlsplit(url), json.dumps(document).encode()
    reader, writer = await asyncio.open_connection(address.hostname, address.port)
    try:
        lines = (
            f"POST {address.path} HTTP/1.1",
            f"Host: {address.netloc}",
            "Content-Type: application/json",
            f"Content-Length: {len(body)}",
            "Connection: close",
        )
        writer.write("\r\n".join((*lines, "", "")).encode() + body)
        answer = await reader.readline()
        return int(answer.split()[1])
    finally:
        writer.close()
