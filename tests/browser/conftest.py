"""A Chromium, a shop with a node and a dashboard, and pages that fail a test when their console complains."""

from __future__ import annotations

import importlib
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, expect, sync_playwright

from millpond.web import static
from tests.browser.process import Site

FLAGS = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync", "--disable-dev-shm-usage",
)  # fmt: skip
NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
PATIENCE = 15_000  # milliseconds
expect.set_options(timeout=PATIENCE)


@pytest.fixture(scope="session")
def chromium() -> str:
    """Where the Chromium of this machine is."""
    if not static().joinpath("index.html").is_file():
        pytest.skip("the dashboard is not built: make web (it needs Node.js)")
    return path_of_chromium()


def path_of_chromium() -> str:
    """Where it is, or no test."""
    named = os.environ.get("MILLPOND_TEST_BROWSER")
    path = named or next(filter(None, map(shutil.which, NAMES)), None)
    if path is None:  # where changes are judged, that nobody looked must not pass for a good look
        give_up = pytest.fail if os.environ.get("CI") else pytest.skip
        give_up("no Chromium here, and none could be installed: see tests/browser/install.sh")
    return path


@pytest.fixture(scope="module")
def browser(chromium: str) -> Iterator[Browser]:
    """A browser for one file of tests: while it is open, this thread has a running event loop, which other
    tests could not bear."""
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=chromium, args=FLAGS)
        yield found
        found.close()


@pytest.fixture(scope="session")
def site(chromium: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Site]:
    """A shop that runs: node and dashboard."""
    site = Site(_folder(tmp_path_factory))
    with site.node(), site.dashboard():
        yield site


def _folder(factory: pytest.TempPathFactory) -> Path:
    """Where the shop is; in pictures for people its path can be seen."""
    if "MILLPOND_TEST_PICTURES" not in os.environ:
        return factory.mktemp("shop")
    folder = Path("/srv/shop")
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    return folder


@pytest.fixture(scope="session")
def shop(site: Site) -> Any:
    """The shop's tasks, to enqueue from this process into the store of the site."""
    with pytest.MonkeyPatch.context() as patch:  # only while it is imported: other tests look at this, too
        patch.setenv("MILLPOND_STORE", site.store)
        return importlib.import_module("tests.browser.shop")


class Watched:
    """Pages whose console is listened to. `forgiven` are parts of messages that a test asks for itself."""

    def __init__(self) -> None:
        self.complaints: list[str] = []
        self.forgiven: list[str] = []

    def listen(self, page: Page) -> None:
        """Hear what goes wrong on it."""
        page.on("console", self._hear)
        page.on("pageerror", lambda error: self.complaints.append(f"uncaught: {error}"))
        page.on("dialog", lambda dialog: self.complaints.append(f"dialog: {dialog.message}"))
        page.set_default_timeout(PATIENCE)

    def _hear(self, message: ConsoleMessage) -> None:
        if message.type in {"error", "warning"}:
            self.complaints.append(message.text)

    def check(self) -> None:
        """Nothing went wrong that was not asked for."""
        rest = [text for text in self.complaints if not any(part in text for part in self.forgiven)]
        assert not rest, rest


@pytest.fixture
def watched() -> Iterator[Watched]:
    """The console of every page of this test."""
    watched = Watched()
    yield watched
    watched.check()


Opener = Callable[..., Page]


@pytest.fixture
def visit(browser: Browser, watched: Watched) -> Iterator[Opener]:
    """Opens a page in a browser of its own: `visit(site, "#/jobs", width=360, scheme="dark", admin=True)`."""
    contexts: list[BrowserContext] = []

    def visit(
        site: Site, route: str = "", *, width: int = 1280, scheme: Any = "light", admin: bool = False
    ) -> Page:
        context = browser.new_context(
            viewport={"width": width, "height": 800}, color_scheme=scheme, timezone_id="UTC"
        )
        contexts.append(context)
        if admin:
            body = {"token": site.token()}
            answer = context.request.post(f"{site.url}api/v1/session", data=body)
            assert answer.ok, answer.text()
        page = context.new_page()
        watched.listen(page)
        page.goto(site.url + route)
        page.wait_for_selector(".link-live")
        return page

    yield visit
    for context in contexts:
        context.close()


@pytest.fixture
def pictures(tmp_path: Path) -> Path:
    """Where pictures go: into the documentation when asked to."""
    return (
        Path(__file__).parents[2] / "docs" / "images" if "MILLPOND_TEST_PICTURES" in os.environ else tmp_path
    )
