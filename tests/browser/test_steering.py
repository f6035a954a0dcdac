"""What a person can change: dead jobs replayed in bulk, recurring tasks, pools, workers. What stops work asks
first."""

from __future__ import annotations

from playwright.sync_api import expect

from tests.browser.process import Site
from tests.node.waiting import all_ended


def test_dead_jobs_are_counted_then_replayed_in_bulk(site, shop, visit):
    all_ended([shop.export.enqueue("lost orders", number, True) for number in range(25)])
    page = visit(site, "#/dead", admin=True)
    cause = page.locator(".cause", has_text="no such table: lost orders")
    expect(cause.locator("b").first).to_have_text("25")
    cause.get_by_role("button", name="Replay").click()
    dialog = page.get_by_role("dialog")
    expect(dialog).to_contain_text("25 jobs would change")
    dialog.get_by_role("button", name="Replay 25").click()
    expect(dialog).to_contain_text("25 jobs replayed")
    dialog.get_by_role("button", name="Close", exact=True).last.click()
    cause.get_by_role("button", name="Discard these").click()
    expect(page.get_by_role("dialog")).to_contain_text("cannot be undone")
    page.get_by_role("dialog").get_by_role("button", name="Discard 25").click()
    expect(page.get_by_role("dialog")).to_contain_text("25 jobs discarded")


def test_a_recurring_task_is_triggered_disabled_and_enabled(site, shop, visit):
    page = visit(site, "#/recurring/shop.rebuild_thumbnails", admin=True)
    expect(page.locator(".graph-box")).to_have_count(4)
    card = page.locator("section.card", has=page.locator("h3", has_text="Last ticks"))
    card.get_by_role("button", name="Trigger shop.rebuild_thumbnails").click()
    expect(card.locator(".ticks li").first).to_contain_text("completed")
    card.get_by_role("button", name="Disable shop.rebuild_thumbnails").click()
    page.get_by_role("dialog").get_by_role("button", name="Disable it").click()
    expect(card.locator(".card-aside")).to_contain_text("disabled")
    card.get_by_role("button", name="Enable shop.rebuild_thumbnails").click()
    expect(card.locator(".card-aside")).to_contain_text("enabled")


def test_a_breaker_that_opened_is_told(site, shop, visit):
    page = visit(site, "#/recurring")
    row = page.locator(".recurring tbody tr", has_text="sync_stock")
    expect(row).to_contain_text("breaker open")
    page.goto(f"{site.url}#/overview")
    expect(page.locator(".alert", has_text="breaker")).to_be_visible()


def test_the_bounds_of_a_pool_change_while_it_runs(site, shop, visit):
    page = visit(site, "#/scaling/images", admin=True)
    page.get_by_role("button", name="Change bounds").click()
    page.get_by_role("dialog").get_by_label("At least").fill("2")
    page.get_by_role("dialog").get_by_role("button", name="Set").click()
    expect(page.locator(".pools .crew")).to_contain_text("2\N{EN DASH}4")
    page.get_by_role("button", name="As the app says").click()
    expect(page.locator(".pools .crew")).to_contain_text("1\N{EN DASH}4")


def test_a_worker_is_recycled(site, shop, visit):
    page = visit(site, "#/nodes", admin=True)
    old = page.locator(".rows-workers tbody tr", has_text="mail").locator(".col-pid").first.inner_text()
    page.get_by_role("button", name=f"Recycle worker {old}").click()
    page.get_by_role("dialog").get_by_role("button", name="Recycle").click()
    expect(page.get_by_role("status").get_by_text("is replaced")).to_be_visible()
    expect(page.get_by_role("button", name=f"Recycle worker {old}")).to_have_count(0)


def test_what_stops_work_asks_first_and_no_is_no(site, shop, visit):
    waiting = shop.resize.using(delay="1h").enqueue("asked.png")
    (dead,) = all_ended([shop.charge.enqueue(23)])
    page = visit(site, admin=True)
    changes: list[str] = []
    page.on("request", lambda request: changes.append(request.url) if request.method != "GET" else None)
    for route, button, what in (
        (f"#/jobs/{waiting.id}", "Cancel", "It will not run."),
        (f"#/jobs/{dead.id}", "Discard", "cannot be undone"),
        ("#/queues/mail", "Pause", "no job of queue mail begins"),
        ("#/recurring/shop.compact_ledger", "Disable shop.compact_ledger", "until it is enabled again"),
        ("#/nodes", "Drain", "No other node serves"),
    ):
        page.goto(site.url + route)
        page.locator("main").get_by_role("button", name=button, exact=True).first.click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text(what)
        expect(dialog).not_to_contain_text("This dashboard")
        dialog.get_by_role("button", name="Back").click()
        expect(dialog).to_have_count(0)
    assert changes == []


def test_far_more_workers_than_cores_are_asked_about(site, shop, visit):
    page = visit(site, "#/scaling/images", admin=True)
    page.get_by_role("button", name="Change bounds").click()
    page.get_by_role("dialog").get_by_label("At most").fill("1000")
    page.get_by_role("dialog").get_by_role("button", name="Set").click()
    question = page.get_by_role("dialog", name="So many workers?")
    expect(question).to_contain_text("1,000 workers on a machine of")
    question.get_by_role("button", name="Back").click()
    expect(page.locator(".pools .crew")).to_contain_text("1\N{EN DASH}4")


def test_a_node_that_carries_the_dashboard_says_so_before_it_is_drained(tmp_path, visit, watched):
    watched.forgiven += [
        "ERR_CONNECTION_REFUSED",
        "ERR_INCOMPLETE_CHUNKED",
        "ERR_CONNECTION_RESET",
        "ERR_EMPTY",
    ]
    site = Site(tmp_path)
    with site.node_with_dashboard() as node:
        page = visit(site, "#/nodes", admin=True)
        page.get_by_role("button", name="Drain").click()
        dialog = page.get_by_role("dialog")
        expect(dialog).to_contain_text("This dashboard runs beside that node and ends with it")
        dialog.get_by_role("button", name="Drain the node").click()
        assert node.wait(30) == 0
