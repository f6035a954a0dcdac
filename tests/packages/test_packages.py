"""The packages that people install: each brings the dashboard's page along, or is not made."""

from __future__ import annotations

import shutil
import tarfile
import urllib.error
import urllib.request
import zipfile
from pathlib import Path
from typing import IO

import pytest
from playwright.sync_api import expect, sync_playwright

from tests.browser.conftest import FLAGS, path_of_chromium
from tests.browser.process import Site
from tests.packages.tree import add_page, build, built, clone_into

PAGE = "millpond/web/static/index.html"


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    return clone_into(tmp_path / "millpond")


@pytest.fixture
def nothing(tmp_path: Path) -> str:
    """A PATH on which there is no npm."""
    (tmp_path / "bin").mkdir()
    return str(tmp_path / "bin")


def test_a_package_without_its_page_is_not_made(tree, nothing):
    for kind in ("wheel", "sdist"):
        made = build(tree, kind, path=nothing)
        assert made.returncode != 0
        assert "npm, which builds it, is not here" in made.stderr
        assert "MILLPOND_NO_WEB=1" in made.stderr
        assert "Traceback" not in made.stderr


def test_a_package_goes_without_its_page_where_that_is_asked_for_and_says_so(tree, nothing, tmp_path):
    add_page(tree)
    made = build(tree, "wheel", path=nothing, MILLPOND_NO_WEB="1")
    assert made.returncode == 0, made.stderr
    with zipfile.ZipFile(built(tree, ".whl")) as wheel:
        assert not [name for name in wheel.namelist() if "web/static" in name]
        wheel.extractall(tmp_path / "installed")
    site = Site(tmp_path, installed=tmp_path / "installed")
    with (tmp_path / "stderr").open("w+b") as stderr, site.dashboard(stderr=stderr):
        _check_there_is_none(site, stderr)


def _check_there_is_none(site: Site, stderr: IO[bytes]) -> None:
    """The address answers 503, and the command has written one note."""
    with pytest.raises(urllib.error.HTTPError) as refused:
        urllib.request.urlopen(site.url, timeout=10)
    assert refused.value.code == 503
    assert b"make web" in refused.value.read()
    stderr.seek(0)
    assert stderr.read().count(b"came without the dashboard's page") == 1


def test_an_sdist_brings_the_page_for_a_wheel_that_is_made_without_npm(tree, nothing, tmp_path):
    add_page(tree)
    made = build(tree, "sdist", path=nothing)
    assert made.returncode == 0, made.stderr
    with tarfile.open(built(tree, ".tar.gz")) as sdist:
        sdist.extractall(tmp_path / "unpacked", filter="data")
    (unpacked,) = (tmp_path / "unpacked").iterdir()
    (unpacked / "web" / "src" / "main.tsx").touch()  # an archive keeps no order of instants
    made = build(unpacked, "wheel", path=nothing)
    assert made.returncode == 0, made.stderr
    with zipfile.ZipFile(built(unpacked, ".whl")) as wheel:
        assert b"the page" in wheel.read(PAGE)
        assert wheel.read("millpond/web/static/licenses.txt")


def test_a_page_older_than_its_source_is_built_again(tree, nothing):
    add_page(tree)
    source = tree / "web" / "src" / "main.tsx"
    source.write_text(source.read_text())
    assert "npm, which builds it" in build(tree, "wheel", path=nothing).stderr


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_wheel_from_a_clean_clone_serves_its_page_in_a_browser(tree, tmp_path):
    made = build(tree, "wheel")
    assert made.returncode == 0, made.stderr
    with zipfile.ZipFile(built(tree, ".whl")) as wheel:
        wheel.extractall(tmp_path / "installed")
        licences = wheel.read("millpond/web/static/licenses.txt").decode()
    assert "preact" in licences
    assert "uplot" in licences
    assert licences.count("Permission is hereby granted") == 2
    _check_it_appears(tmp_path)
    shutil.rmtree(tmp_path / "installed" / "millpond" / "web" / "static")
    (tmp_path / "other").mkdir()
    site = Site(tmp_path / "other", installed=tmp_path / "installed")
    with (tmp_path / "stderr").open("w+b") as stderr, site.node_with_dashboard(stderr=stderr):
        _check_there_is_none(site, stderr)


def _check_it_appears(tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    site = Site(tmp_path / "project", installed=tmp_path / "installed")
    with site.dashboard(), sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=path_of_chromium(), args=FLAGS)
        page = browser.new_page()
        page.goto(site.url)
        expect(page.get_by_text("No queue yet")).to_be_visible()
        browser.close()
