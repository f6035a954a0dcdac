"""Single jobs and lists of them: what went wrong, what waits and why, long lists, keys."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.node.waiting import all_ended, ended, until

SCROLLED = """() => {
  window.scrollTo(0, document.documentElement.scrollHeight);
  const drawn = document.querySelectorAll(".rows tbody tr:not(.gap)").length;
  return [Number(document.querySelector(".rows").getAttribute("aria-rowcount")), drawn];
}"""


def test_a_traceback_can_be_read_and_the_job_replayed(site, shop, visit):
    handle = shop.charge.enqueue(17, "visa")
    ended(handle)
    page = visit(site, f"#/jobs/{handle.id}", admin=True)
    expect(page.get_by_role("heading", level=1)).to_contain_text("charge")
    expect(page.get_by_label("traceback", exact=True)).to_contain_text("_ask_the_bank(order, card)")
    expect(page.get_by_label("arguments", exact=True)).to_contain_text('"order": 17')
    expect(page.locator(".why")).to_contain_text("replay it")
    page.get_by_role("button", name="Replay").click()
    expect(page.get_by_role("status").get_by_text("goes back into its queue")).to_be_visible()
    expect(page.locator(".attempts > li")).to_have_count(2)


def test_a_running_job_shows_its_progress_and_is_cancelled(site, shop, visit):
    handle = shop.report.enqueue(100, 0.2)
    page = visit(site, f"#/jobs/{handle.id}", admin=True)
    expect(page.locator(".progress-line")).to_contain_text("of 100")
    expect(page.locator(".stretch-running")).to_have_count(1)
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("dialog").get_by_role("button", name="Cancel the job").click()
    expect(page.locator(".job-line .badge")).to_contain_text("cancelled")


def test_a_job_that_waits_says_what_for(site, shop, visit):
    later = shop.resize.using(delay="1h").enqueue("later.png")
    page = visit(site, f"#/jobs/{later.id}")
    expect(page.locator(".job-line .badge")).to_contain_text("scheduled")
    expect(page.locator(".why")).not_to_be_empty()


def test_a_long_list_draws_only_what_is_in_sight(site, shop, visit):
    shop.resize.using(delay="2h").enqueue_many([(f"far/{number}.png",) for number in range(1500)])
    page = visit(site, "#/jobs?state=scheduled&queue=images")
    page.locator(".rows tbody tr:not(.gap)").first.wait_for()
    most = 0

    def grown() -> bool:
        nonlocal most
        length, drawn = page.evaluate(SCROLLED)
        most = max(most, drawn)
        return bool(length > 1200)

    until(grown, "the list growing as it is scrolled")
    assert most < 60


def test_search_finds_a_job_by_what_it_carries(site, shop, visit):
    handles = [shop.export.enqueue(name, 1) for name in ("haystack", "needle-7531")]
    all_ended(handles)
    page = visit(site)
    page.keyboard.press("/")
    page.keyboard.type("needle-7531")
    page.keyboard.press("Enter")
    row = page.locator(".rows tbody tr:not(.gap)")
    expect(row).to_have_count(1)
    expect(row).to_contain_text("needle-7531")
    row.click()
    expect(page).to_have_url(re.compile(handles[1].id))
    expect(page.get_by_label("result", exact=True)).to_contain_text("paid_at")


def test_everything_can_be_reached_by_keys(site, shop, visit):
    all_ended([shop.send_receipt.enqueue(number) for number in range(3)])
    page = visit(site)
    for key, title in (
        ("j", "Jobs"),
        ("d", "Dead letters"),
        ("w", "Workers"),
        ("s", "Scaling"),
        ("r", "Recurring tasks"),
        ("o", "Overview"),
    ):
        page.keyboard.press("g")
        page.keyboard.press(key)
        expect(page.get_by_role("heading", level=1)).to_have_text(title)
    page.keyboard.press("?")
    expect(page.get_by_role("dialog")).to_contain_text("Next and previous row")
    page.keyboard.press("Escape")
    expect(page.get_by_role("dialog")).to_have_count(0)
    page.keyboard.press("t")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.goto(f"{site.url}#/jobs?queue=mail")
    page.locator(".rows tbody tr:not(.gap)").nth(2).wait_for()
    page.locator(".rows tbody tr:not(.gap)").first.focus()
    page.keyboard.press("j")
    page.keyboard.press("ArrowDown")
    assert page.evaluate("document.activeElement.dataset.row") == "2"
    page.keyboard.press("x")
    expect(page.locator(".bulk-bar")).to_contain_text("1 chosen job")
    page.keyboard.press("Enter")
    expect(page.get_by_role("heading", level=1)).to_contain_text("shop.")


def test_going_back_finds_the_list_as_it_was_left(site, shop, visit):
    shop.resize.using(delay="3h").enqueue_many([(f"back/{number}.png",) for number in range(450)])
    page = visit(site, "#/jobs?state=scheduled&text=back/")
    page.locator(".rows tbody tr:not(.gap)").first.wait_for()
    until(lambda: page.evaluate(SCROLLED)[0] > 300, "the list growing as it is scrolled")
    page.locator(".rows tbody tr:not(.gap)").nth(3).locator("input").click()
    expect(page.locator(".bulk-bar")).to_contain_text("1 chosen job")
    loaded = page.evaluate(SCROLLED)[0]
    page.evaluate("document.addEventListener('click', () => (window.left = window.scrollY), true)")
    page.locator(".rows tbody tr:not(.gap) a").nth(5).click()  # which may be scrolled into sight first
    expect(page.get_by_role("heading", level=1)).to_contain_text("resize")
    assert page.evaluate("window.scrollY") == 0, "a new page begins at its top"
    top = page.evaluate("window.left")
    assert top > 5000
    page.go_back()
    expect(page.get_by_role("heading", level=1)).to_have_text("Jobs")
    until(lambda: abs(page.evaluate("window.scrollY") - top) < 5, "the list being where it was")
    assert int(page.locator(".rows").get_attribute("aria-rowcount") or 0) >= loaded
    expect(page.locator(".bulk-bar")).to_contain_text("1 chosen job")


def test_the_first_key_goes_into_the_rows(site, shop, visit):
    all_ended([shop.send_receipt.enqueue(number) for number in range(2)])
    page = visit(site, "#/jobs?queue=mail")
    page.locator(".rows tbody tr:not(.gap)").nth(1).wait_for()
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.dataset.row") == "0"
    page.keyboard.press("j")
    assert page.evaluate("document.activeElement.dataset.row") == "1"


def test_copied_is_said_only_of_what_was_copied(site, shop, visit):
    handle = shop.resize.using(delay="1h").enqueue("copied.png")
    for without in ("navigator.clipboard", "navigator.clipboard and document.execCommand"):
        page = visit(site, f"#/jobs/{handle.id}")
        page.evaluate(
            "Object.defineProperty(navigator, 'clipboard', {value: undefined})"
        )  # as over plain HTTP
        if "execCommand" in without:
            page.evaluate("document.execCommand = () => false")
        button = page.locator(".job-id button")
        button.click()
        expected = "Not copied: the browser refused it" if "execCommand" in without else "Copied"
        expect(button).to_have_attribute("aria-label", expected)


def test_a_job_that_is_not_there_is_told_in_words_for_people_and_asked_for_once(site, shop, visit, watched):
    watched.forgiven.append("404")
    page = visit(site, "#/overview")
    asked: list[str] = []
    page.on("request", lambda request: asked.append(request.url) if "/api/v1/jobs/" in request.url else None)
    page.goto(f"{site.url}#/jobs/01890000-0000-7000-8000-000000000000")
    expect(page.get_by_role("alert")).to_contain_text("it never was, or it was pruned")
    expect(page.get_by_role("alert")).not_to_contain_text("It never was")
    expect(page.get_by_role("alert")).not_to_contain_text("GET /api")
    expect(page.get_by_role("button", name="Try again")).to_have_count(0)
    page.clock.install()
    page.clock.run_for(20_000)
    assert len(asked) == 1
