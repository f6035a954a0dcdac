"""What a person can change: dead jobs replayed in bulk, recurring tasks, pools, workers."""

from __future__ import annotations

from playwright.sync_api import expect

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
    expect(page.get_by_role("status").get_by_text("is replaced")).to_be_visible()
    expect(page.get_by_role("button", name=f"Recycle worker {old}")).to_have_count(0)
