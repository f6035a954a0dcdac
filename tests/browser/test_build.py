"""The dashboard as a build: its own tests pass, it is small, and it asks nobody outside for anything."""

from __future__ import annotations

import gzip
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from millpond.web import static

WEB = Path(__file__).parents[2] / "web"
HAS_NODE = shutil.which("node") is not None and (WEB / "node_modules" / "esbuild").is_dir()


@pytest.fixture(scope="module")
def built() -> dict[str, str]:
    """The files as they are served."""
    if not static().joinpath("index.html").is_file():
        pytest.skip("the dashboard is not built: make web (it needs Node.js)")
    return {file.name: file.read_text(encoding="utf-8") for file in static().iterdir() if file.is_file()}


@pytest.mark.skipif(
    not HAS_NODE, reason="the tests of the TypeScript need Node.js and its packages: make web"
)
def test_the_logic_of_the_page_passes_its_own_tests(tmp_path: Path):
    subprocess.run(["node", "build.mjs", "--tests"], cwd=WEB, check=True, timeout=60)
    files = sorted(str(path) for path in (WEB / "build" / "tests").glob("*.test.mjs"))
    run = subprocess.run(
        ["node", "--test", *files], cwd=WEB, capture_output=True, text=True, timeout=100, check=False
    )
    assert run.returncode == 0, run.stdout[-4000:]


@pytest.mark.skipif(not HAS_NODE, reason="the types are checked with Node.js and its packages: make web")
def test_the_types_of_the_page_hold():
    run = subprocess.run(
        ["node_modules/.bin/tsc", "--noEmit"],
        cwd=WEB,
        capture_output=True,
        text=True,
        timeout=100,
        check=False,
    )
    assert run.returncode == 0, run.stdout[-4000:]


def test_the_page_is_small(built):
    sizes = {name: len(text.encode()) for name, text in built.items() if name.endswith((".js", ".css"))}
    assert sum(sizes.values()) < 200_000, sizes
    assert sum(len(gzip.compress(built[name].encode())) for name in sizes) < 75_000


def test_the_page_names_only_its_own_files(built):
    page = built["index.html"]
    named = re.findall(r'(?:src|href)="([^"]+)"', page)
    assert named
    assert all(name.removeprefix("static/") in built for name in named)
    assert not re.search(r"<script(?![^>]*\bsrc=)|<style| on\w+=| style=", page), (
        "the policy forbids inline code"
    )
    code = "".join(text for name, text in built.items() if name.endswith((".js", ".css")))
    addresses = set(re.findall(r"https?://[\w./-]+", code))
    assert all(address.startswith("http://www.w3.org/") for address in addresses), addresses  # XML namespaces
    assert not re.search(r"\binnerHTML\s*=\s*[a-z(]|\beval\(|new Function\(|document\.write", _ours(code))


def _ours(code: str) -> str:
    """Without what Preact does for those who ask for raw HTML: nobody here does."""
    assert "dangerouslySetInnerHTML:" not in code
    return re.sub(r"\.innerHTML=\w+\.__html|\.innerHTML=\"\"|innerHTML=\w+&&", "", code)


def test_the_lock_names_no_registry():
    lock = (WEB / "package-lock.json").read_text()
    assert '"resolved"' not in lock
    assert "http" not in re.sub(r'"url": "https?://[^"]+"', "", lock)
