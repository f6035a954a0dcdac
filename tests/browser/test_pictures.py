"""Pictures of the dashboard under load, for people to look at; `make pictures` puts them into docs/images."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import pytest
from PIL import Image
from playwright.sync_api import Page

from tests.node.waiting import all_ended, until

SECONDS = 150 if "MILLPOND_TEST_PICTURES" in os.environ else 2
SHOTS = (
    ("overview-light", "#/overview", 1280, 1000, "light"),
    ("overview-dark", "#/overview", 1280, 1000, "dark"),
    ("overview-phone", "#/overview", 360, 740, "light"),
    ("jobs-phone", "#/jobs", 360, 740, "dark"),
    ("dead-light", "#/dead", 1280, 720, "light"),
    ("recurring-light", "#/recurring/shop.book_orders", 1280, 860, "light"),
    ("scaling-dark", "#/scaling", 1280, 1000, "dark"),
    ("workers-light", "#/nodes", 1280, 620, "light"),
)


def _day(shop: Any, page: Page) -> None:
    """Work in waves, as a day has them, in minutes instead of hours."""
    shop.report.enqueue(SECONDS * 2, 1.0)
    dead = [shop.charge.enqueue(number, "visa") for number in range(14)]
    dead += [shop.export.enqueue(name, 1, True) for name in ("orders", "stock") for _ in range(4)]
    for second in range(SECONDS):
        wave = 1 + math.sin(second / 18) + 0.5 * math.sin(second / 5)
        shop.resize.enqueue_many(
            [(f"photos/{second}-{n}.png", 400, 0.12) for n in range(int(18 * max(wave, 0)))]
        )
        shop.send_receipt.enqueue_many([(n, "ann@example.org") for n in range(int(25 * max(wave, 0)))])
        shop.export.enqueue("orders", second)
        page.wait_for_timeout(900)
    all_ended(dead)


def _take(page: Page, path: Path) -> None:
    page.screenshot(path=path)
    with Image.open(path) as shot:
        shot.convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


@pytest.mark.slow  # `make pictures`
def test_pictures_are_taken_in_light_dark_and_on_a_phone(site, shop, visit, pictures: Path):
    watching = visit(site)
    _day(shop, watching)
    pictures.mkdir(parents=True, exist_ok=True)
    for name, route, width, height, scheme in SHOTS:
        watching.emulate_media(color_scheme=scheme)
        watching.set_viewport_size({"width": width, "height": height})
        watching.goto(site.url + route)
        watching.locator("main .loading").first.wait_for(state="detached")
        if "overview" in route:
            watching.locator(".segments label", has_text="Live").click()
        watching.mouse.move(0, 0)
        watching.wait_for_timeout(300)  # the charts take two frames to be drawn
        _take(watching, pictures / f"{name}.png")
    failed = next(one.id for one in shop.app.store.search(_dead()).jobs)
    watching.set_viewport_size({"width": 1280, "height": 860})
    watching.emulate_media(color_scheme="light")
    watching.goto(f"{site.url}#/jobs/{failed}")
    watching.get_by_label("traceback", exact=True).wait_for()
    _take(watching, pictures / "job-light.png")
    until(lambda: len(list(pictures.glob("*.png"))) > len(SHOTS))


def _dead() -> Any:
    from millpond.job import JobState
    from millpond.store.protocol import Filter

    return Filter(states=(JobState.DEAD,), task="shop.charge")
