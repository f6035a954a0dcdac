"""Every Python block of the documentation runs as it stands: a page is a program, read from top to bottom.

A block that is a fragment by nature has `<!-- skip -->` on the line before it; there are few. Functions named
test_… in a page are called, too.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.pages import PAGES, ROOT, SKIP, blocks, script, title

LIMIT = 25  # seconds for one page; each takes about one
CALL_TESTS = """
for _name, _function in list(globals().items()):
    if _name.startswith("test_"):
        _function()
"""


@pytest.mark.timeout(2 * LIMIT)
@pytest.mark.parametrize("page", [page for page in PAGES if script(page).strip()], ids=title)
def test_the_python_blocks_of_a_page_run(page: Path, tmp_path: Path) -> None:
    program = tmp_path / f"{page.stem.replace('-', '_')}.py"
    program.write_text(script(page) + CALL_TESTS, encoding="utf-8")
    command = [sys.executable, "-W", "error", str(program)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=LIMIT, cwd=tmp_path, check=False)
    assert done.returncode == 0, f"{title(page)}, lines as in the page\n{done.stderr}"
    assert "Traceback" not in done.stderr, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=title)
def test_a_page_is_made_of_whole_blocks(page: Path) -> None:
    fences = [line for line in page.read_text(encoding="utf-8").splitlines() if line.startswith("```")]
    assert len(fences) % 2 == 0
    assert all(fence == "```" for fence in fences[1::2])


def test_hardly_any_block_is_skipped() -> None:
    assert sum(page.read_text(encoding="utf-8").count(SKIP) for page in PAGES) <= 3


def test_the_examples_of_the_readme_are_short() -> None:
    examples = blocks(ROOT / "README.md")
    assert len(examples) == 2
    assert all(len([line for line in example.splitlines() if line.strip()]) <= 20 for example in examples)
