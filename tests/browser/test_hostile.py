"""Whatever a job carries, the dashboard shows it as text: nothing runs, nothing breaks out of its place."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from millpond import App, Node, Retry, current_job
from tests.browser.process import Site
from tests.node.waiting import all_ended

OWN = "document.documentElement.dataset.owned=1"
CORPUS = (
    f"<script>{OWN}</script>",
    f"<img src=x onerror={OWN}>",
    f"\"><svg onload='{OWN}'>",
    f"javascript:{OWN}",
    f"</pre></td></table><iframe srcdoc='<script>parent.{OWN}</script>'>",
    "{{constructor.constructor('return 1')()}} ${7*7} <%= 7*7 %>",
    "\x01\x02\x07\x08\x1b[31mred\x1b[0m\x7f\x9b",
    "\u202etxt.exe \u2066isolate \u200f\u200e\u061c\u200b\ufeff\u2028\u2029",
    "ב" * 40 + " עברית العربية",
    "Z\u0351\u036b\u0343\u0363\u0489\u0321" * 40,
    "W" * 3000,
    "word " * 800,
    "\n" * 200 + "\t" * 200,
    "../../etc/passwd?x=1#y%2F%00&z=<b>",
    "\U0001d54f\U0001f389" * 300,
    "'; DROP TABLE jobs; --",
)
QUEUES = ("q" * 64, "default")  # the store takes no stranger names
LONG = "L" * 1_000_000
NAMES = """() => fetch("api/v1/queues")
  .then((answer) => answer.json())
  .then((all) => all.queues.map((one) => one.queue))"""
PAGES = ("#/overview", "#/jobs", "#/jobs?state=dead", "#/dead", "#/nodes", "#/recurring", "#/scaling")
CHECK = """() => ({
  owned: document.documentElement.dataset.owned ?? null,
  over: document.documentElement.scrollWidth - document.documentElement.clientWidth,
  strange: document.querySelectorAll("#app :is(script, iframe, img, [onload], [onerror])").length,
  bidi: (document.body.innerText.match(/[\\u202a-\\u202e\\u2066-\\u2069\\u0000-\\u0008]/g) ?? []).length,
})"""
CLEAN = {"owned": None, "over": 0, "strange": 0, "bidi": 0}


class Hostile(Exception):
    """Says what it is given."""


@pytest.fixture(scope="module")
def hostile(browser, tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Site, list[str]]]:
    """A store full of it, in every field that a job can carry."""
    site = Site(tmp_path_factory.mktemp("hostile"))
    app = App(site.store)
    ids = [*_jobs_of(app)]
    with site.dashboard():
        yield site, ids
    app.store.close()


def _jobs_of(app: App) -> Iterator[str]:
    back = app.task(name="back", key="{value}", limit=1)(_give_back)
    long = app.task(name="long", queue="long", retry=Retry(attempts=1))(_fail_at_length)
    handles: list[Any] = []
    for place, text in enumerate(CORPUS):
        name, queue = f"{place}{_name(text)[:180]}", QUEUES[place % len(QUEUES)]
        task = app.task(name=name, queue=queue, retry=Retry(attempts=1))(_failing(text))
        handles.append(task.using(unique=_name(text)[:100], priority=place % 10).enqueue(value=_json(text)))
    handles += [back.enqueue(_json(text)[:120]) for text in CORPUS]
    handles.append(long.enqueue(LONG))
    with Node(app):
        all_ended(handles)
    yield from (handle.id for handle in handles)


def _failing(text: str) -> Any:
    def fail(value: str) -> None:
        raise Hostile(text)

    return fail


def _give_back(value: str) -> dict[str, str]:
    current_job().progress(0.5, value)
    return {value: value}


def _fail_at_length(value: str) -> None:
    raise Hostile(value)


def _name(text: str) -> str:
    """As much of it as a name may hold."""
    return "".join(one for one in text if one.isprintable() or one in "\u202e\u200b") or "x"


def _json(text: str) -> str:
    """As much of it as an argument may hold."""
    return text.replace("\x00", "")


def test_whatever_jobs_carry_nothing_runs_and_nothing_breaks_out(hostile, visit):
    site, ids = hostile
    _look_on_a_wide_page(site, ids, visit)
    _look_on_a_phone(site, ids, visit)


def _look_on_a_wide_page(site: Site, ids: list[str], visit: Any) -> None:
    page = visit(site)
    _visit_all(page, site, [*PAGES, *(f"#/jobs/{one}" for one in ids), *_queues(page)])
    page.goto(f"{site.url}#/jobs/{ids[7]}")
    page.locator(".mark", has_text="U+202E").first.wait_for()
    page.goto(f"{site.url}#/jobs/{ids[6]}")
    page.locator(".mark", has_text="\N{SYMBOL FOR ESCAPE}").first.wait_for()


def _look_on_a_phone(site: Site, ids: list[str], visit: Any) -> None:
    """A line of a megabyte is cut until somebody asks for it."""
    page = visit(site, width=360, scheme="dark")
    _visit_all(page, site, [*PAGES, *(f"#/jobs/{one}" for one in ids[: len(CORPUS)])])
    page.goto(f"{site.url}#/jobs/{ids[-1]}")
    block = page.get_by_label("arguments", exact=True)
    block.wait_for()
    assert len(block.inner_text()) < 30_000
    page.get_by_role("button", name="Show all").first.click()
    assert page.evaluate("document.querySelector('[aria-label=arguments]').textContent.length") > 60_000
    assert page.evaluate(CHECK) == CLEAN


def _visit_all(page: Any, site: Site, routes: list[str]) -> None:
    for route in routes:
        page.goto(site.url + route)
        page.locator("main h1").wait_for()
        page.locator("main .loading").first.wait_for(state="detached")
        assert page.evaluate(CHECK) == CLEAN, route


def _queues(page: Any) -> list[str]:
    names = page.evaluate(NAMES)
    return ["#/queues/" + page.evaluate("(name) => encodeURIComponent(name)", name) for name in names]
