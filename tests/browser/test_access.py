"""Every page can be used without seeing it: landmarks, names, captions; and without a wide screen."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.node.waiting import all_ended

PAGES = ("overview", "jobs", "dead", "nodes", "recurring/shop.book_orders", "scaling", "queues/images")
AUDIT = Path(__file__).with_name("audit.js").read_text(encoding="utf-8").partition("\n")[2]

BROKEN = """async () => {
  const tags = ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa", "wcag22aa", "best-practice"];
  const found = await axe.run(document, { runOnly: tags });
  return found.violations.map((rule) => [rule.id, ...rule.nodes.map((one) => one.html.slice(0, 200))]);
}"""


@pytest.mark.parametrize("width", [1280, 800, 360])
def test_every_page_is_whole_for_eyes_ears_and_keys(site, shop, visit, width: int):
    all_ended([shop.charge.enqueue(1), shop.export.enqueue("orders", 3)])
    page = visit(site, width=width)
    for name in PAGES:
        page.goto(f"{site.url}#/{name}")
        page.locator("main h1").wait_for()
        page.locator("main .loading").first.wait_for(state="detached")
        assert page.evaluate(AUDIT) == [], name


@pytest.fixture(scope="module")
def axe() -> str:
    """The rules of axe-core, a program that comes with the page's packages."""
    path = Path(__file__).parents[2] / "web" / "node_modules" / "axe-core" / "axe.min.js"
    if not path.is_file():
        pytest.skip("axe-core comes with the packages of the page: make web")
    return path.read_text(encoding="utf-8")


@pytest.mark.parametrize("view", [(1280, "light"), (1280, "dark"), (360, "light")])
def test_no_page_breaks_a_rule_of_wcag(site, shop, visit, axe, view: tuple[int, str]):
    (dead,) = all_ended([shop.charge.enqueue(1)])
    page = visit(site, width=view[0], scheme=view[1], admin=True)
    for name in (*PAGES, f"jobs/{dead.id}"):
        page.goto(f"{site.url}#/{name}")
        page.locator("main h1").wait_for()
        page.locator("main .loading").first.wait_for(state="detached")
        page.evaluate(axe)
        assert page.evaluate(BROKEN) == [], name


def test_motion_is_left_out_for_those_who_ask(site, browser, watched):
    context = browser.new_context(reduced_motion="reduce")
    page = context.new_page()
    watched.listen(page)
    page.goto(site.url)
    page.locator("main h1").wait_for()
    moving = page.evaluate("document.getAnimations().length")
    context.close()
    assert moving == 0


LEFT = """() => ["state", "job", "recycle"].map(
  (name) => document.querySelector(`.rows-workers tbody .col-${name}`)
    .firstElementChild.getBoundingClientRect().left)"""
CUT = """() => [...document.querySelectorAll(".stat-note, .stat-label")]
  .filter((one) => one.scrollWidth > one.clientWidth).map((one) => one.innerText)"""


def test_on_a_phone_rows_are_in_line_and_nothing_is_cut(site, shop, visit):
    all_ended([shop.send_receipt.enqueue(1)])
    page = visit(site, "#/nodes", width=360)
    page.locator(".rows-workers tbody .col-recycle").first.wait_for()
    assert len(set(page.evaluate(LEFT))) == 1
    page.goto(f"{site.url}#/overview")
    page.locator(".stat-note").last.wait_for()
    assert page.evaluate(CUT) == []
