"""A small shop for the dashboard to show: quick mail, slow pictures, failing exports, recurring tasks."""

from __future__ import annotations

import os
import time

from millpond import App, Priority, Retry, current_job

app = App(os.environ.get("MILLPOND_STORE", "memory://"))
app.pool("images", workers=(1, 4), max_wait="10s")
app.pool("mail", workers=(1, 2), kind="async", concurrency=20, max_wait="5s")
app.pool("exports", workers=(1, 2), max_wait="30s")


class PaymentRefused(Exception):
    """The bank said no."""


@app.task(name="shop.resize", queue="images", timeout=30)
def resize(path: str, width: int = 200, seconds: float = 0.05) -> str:
    time.sleep(seconds)
    return f"{path}@{width}"


@app.task(name="shop.send_receipt", queue="mail")
async def send_receipt(order: int, address: str = "a@example.org") -> None:
    """Nothing to do: mail is quick."""


@app.task(name="shop.charge", queue="exports", retry=Retry(attempts=1))
def charge(order: int, card: str = "") -> None:
    _ask_the_bank(order, card)


def _ask_the_bank(order: int, card: str) -> None:
    raise PaymentRefused(f"card {card or 'unknown'} of order {order} was refused by the bank")


@app.task(name="shop.export", queue="exports", retry=Retry(attempts=3, first=0.01, factor=1))
def export(name: str, rows: int = 0, fail: bool = False) -> dict[str, object]:
    if fail:
        raise ValueError(f"no such table: {name}")
    return {"name": name, "rows": rows, "columns": ["id", "total", "paid_at"]}


@app.task(name="shop.report", queue="exports", timeout=600)
def report(pages: int, seconds: float = 0.0) -> None:
    for page in range(1, pages + 1):
        current_job().progress(page / pages, f"page {page} of {pages}")
        time.sleep(seconds)


@app.recurring(name="shop.fetch_orders", every="20s", queue="mail", priority=Priority.HIGH)
async def fetch_orders() -> None:
    """Looks for new orders."""


@app.recurring(name="shop.book_orders", every="40s", queue="exports", depends_on=[fetch_orders])
def book_orders() -> None:
    time.sleep(0.5)


@app.recurring(name="shop.report_sales", every="60s", queue="exports", depends_on=[book_orders])
def report_sales() -> None:
    time.sleep(0.2)


@app.recurring(
    name="shop.compact_ledger",
    cron="0 3 * * *",
    timezone="Europe/Paris",
    queue="exports",
    blocks=[book_orders, report_sales],
)
def compact_ledger() -> None:
    time.sleep(0.1)


@app.recurring(name="shop.sync_stock", every="2s", queue="exports", max_failures=3, retry=Retry(attempts=1))
def sync_stock() -> None:
    raise ConnectionError("the warehouse does not answer")


@app.recurring(name="shop.rebuild_thumbnails", mode="triggered", queue="images")
def rebuild_thumbnails() -> None:
    time.sleep(0.3)
