"""What moves: depth that rises and falls, a queue that is paused, a server that goes away and comes back."""

from __future__ import annotations

import contextlib
import socket
from pathlib import Path

from playwright.sync_api import Page, expect

from tests.browser.process import Site, stop
from tests.node.waiting import all_ended, until

WAITING = """() => {
  const rows = [...document.querySelectorAll(".queues tbody tr")];
  const row = rows.find((one) => one.innerText.includes("images"));
  return row ? Number(row.querySelector("[data-label=Waiting] b").title.replaceAll(",", "")) : -1;
}"""

HEARD = """() => {
  window.heard = [];
  const hear = () => {
    for (const one of document.querySelectorAll("[aria-live]")) {
      const text = one.textContent.trim();
      if (text && one.heard !== text) window.heard.push((one.heard = text));
    }
  };
  new MutationObserver(hear).observe(document.body, { subtree: true, childList: true, characterData: true });
}"""


def sign_in(page: Page, token: str) -> None:
    dialog = page.get_by_role("dialog")
    dialog.get_by_label("Token").fill(token)
    dialog.get_by_role("button", name="Sign in").click()


def test_depth_rises_and_falls_while_one_watches(site, shop, visit):
    page = visit(site)
    page.wait_for_selector(".queues")
    shop.resize.enqueue_many([(f"{number}.png", 100, 0.04) for number in range(300)])
    until(lambda: page.evaluate(WAITING) > 20, "the depth rising")
    until(lambda: page.evaluate(WAITING) == 0, "the depth falling")
    page.locator(".segments label", has_text="Live").click()
    expect(page.locator(".chart canvas")).to_have_count(3)
    expect(page.locator(".chart .unseen", has_text="waiting: now")).not_to_be_empty()


def test_a_queue_is_paused_by_whoever_has_the_token_and_goes_on(site, shop, visit, watched):
    watched.forgiven.append("401")
    page = visit(site, "#/queues/mail")
    page.get_by_role("button", name="Pause").click()
    page.get_by_role("dialog").get_by_role("button", name="Pause the queue").click()
    sign_in(page, "not the token")
    expect(page.get_by_role("dialog").get_by_role("alert")).to_be_visible()
    sign_in(page, site.token())
    expect(page.get_by_role("status").get_by_text("is paused")).to_be_visible()
    expect(page.get_by_role("button", name="Resume")).to_be_visible()

    handle = shop.send_receipt.enqueue(1)
    other = visit(site, f"#/jobs/{handle.id}")
    expect(other.locator(".why")).to_contain_text("paused")
    page.get_by_role("button", name="Resume").click()
    expect(other.locator(".job-line .badge")).to_contain_text("completed")


def test_a_lost_server_is_told_and_found_again(browser, tmp_path: Path, visit, watched):
    watched.forgiven += [
        "ERR_CONNECTION_REFUSED",
        "ERR_INCOMPLETE_CHUNKED",
        "ERR_CONNECTION_RESET",
        "ERR_EMPTY",
        "503",
    ]
    site = Site(tmp_path)
    with site.dashboard() as process:
        page = visit(site)
        expect(page.get_by_text("No queue yet")).to_be_visible()
        stop(process)
        expect(page.locator(".banner")).to_contain_text("Everything here is as of")
        expect(page.locator(".link-sign")).to_contain_text("Disconnected")
    with site.dashboard():
        expect(page.locator(".link-sign")).to_contain_text("Live")
        expect(page.locator(".banner")).to_have_count(0)


def test_a_public_dashboard_shows_nothing_before_the_token(browser, tmp_path: Path, watched, monkeypatch):
    token = "a-token-of-somebodys-choice"
    monkeypatch.setenv("MILLPOND_DASHBOARD_TOKEN", token)
    site = Site(tmp_path)
    with site.dashboard("0.0.0.0"):
        page = browser.new_page()
        watched.listen(page)
        page.goto(site.url)
        expect(page.get_by_text("shows nothing without a token")).to_be_visible()
        page.get_by_label("Token").fill(token)
        page.get_by_role("button", name="Sign in").click()
        expect(page.get_by_text("No queue yet")).to_be_visible()
        page.get_by_role("button", name="Sign out").click()
        expect(page.get_by_text("shows nothing without a token")).to_be_visible()
        page.context.close()


def test_a_session_that_has_ended_is_put_away(site, browser, watched):
    watched.forgiven.append("401")
    context = browser.new_context()
    ended = {"name": f"millpond-session-{site.port}", "value": "of-yesterday", "url": site.url}
    context.add_cookies([ended])
    page = context.new_page()
    watched.listen(page)
    page.goto(site.url)
    expect(page.locator(".link-sign")).to_contain_text("Live")
    assert not [one for one in context.cookies() if one["value"] == "of-yesterday"]
    context.close()


def test_an_alert_is_read_out_once_though_its_text_changes(site, shop, visit):
    page = visit(site, "#/overview")
    alert = page.locator(".alert", has_text="of queue exports died")
    all_ended([shop.charge.enqueue(1)])
    expect(alert).to_be_visible()
    page.evaluate(HEARD)
    for number in (2, 3):
        before = alert.inner_text()
        all_ended([shop.charge.enqueue(number)])
        expect(alert).not_to_have_text(before)
    said = page.evaluate("window.heard.filter((text) => text.includes('of queue exports died'))")
    assert len(said) <= 1, said


def test_a_page_for_which_there_is_no_stream_asks_for_the_overview_instead(site, shop, browser, watched):
    watched.forgiven.append("503")
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            one = stack.enter_context(socket.create_connection(("127.0.0.1", site.port), timeout=20))
            one.sendall(f"GET /api/v1/events HTTP/1.1\r\nHost: 127.0.0.1:{site.port}\r\n\r\n".encode())
            assert one.recv(12).endswith(b"200")
        page = browser.new_page()
        watched.listen(page)
        page.goto(site.url)
        expect(page.locator(".link-sign")).to_contain_text("Every 3 s")
        expect(page.locator(".banner")).to_have_count(0)
        shop.resize.using(delay=600).enqueue("a.png", 100, 0)
        expect(page.locator(".queues tbody tr").filter(has_text="images")).to_be_visible()
    expect(page.locator(".link-sign")).to_contain_text("Live", timeout=30_000)
    page.context.close()
