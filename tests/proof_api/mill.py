"""An app with two pools: tasks that give back, raise, print and report hostile text, and a quick one."""

from __future__ import annotations

import os
from typing import Any

from millpond import App, Retry, current_job
from tests.api.test_many import HOSTILE, MEBIBYTE

ROOM = 100  # bytes around the text of an argument
PLAIN = "word, and "


def made(url: str) -> App:
    """The app on a store."""
    app = App(url)
    app.pool("bad", workers=(1, 2))
    app.pool("quick", workers=1)
    app.task(name="quick", queue="quick")(quick)
    for number, unit in enumerate((*HOSTILE, PLAIN)):
        told: dict[str, Any] = {"queue": "bad", "retry": Retry(attempts=1), "key": "{key}", "limit": 9}
        name = (unit * 200)[:190]
        app.task(name=f"{number} back {name}", **told)(give_back)
        app.task(name=f"{number} fail {name}", **told)(fail)
    return app


def filling(unit: str) -> str:
    """As much of it as an argument may have."""
    size = len(unit.encode("unicode_escape"))  # JSON may need as many bytes for it
    return unit * ((MEBIBYTE - ROOM * 10) // (2 * size))


def quick(number: int) -> int:
    return number


def give_back(value: str, key: str) -> dict[str, str]:
    """With many keys that differ in a secret alone."""
    current_job().progress(0.5, value)
    print(value)
    alike = {f"{value[:8]}://:{number}@": "" for number in range(8_000)}
    return {**alike, value[:1000]: value[: len(value) // 2]}


def fail(value: str, key: str) -> None:
    """Of a type with a hostile name, with notes in its traceback."""
    error = type(value[:100].replace("\0", ""), (Exception,), {})(value)
    error.add_note(value)
    raise error


app = made(os.environ.get("MILLPOND_TEST_API_STORE", "memory://"))
