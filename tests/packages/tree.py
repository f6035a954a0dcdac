"""What the tests of the packages work with: a copy of the tree as git has it, and a build of it."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]
STATIC = Path("src/millpond/web/static")


def clone_into(folder: Path) -> Path:
    """The source as a clean clone has it, with changes that are not committed yet."""
    listed = ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"]
    names = subprocess.run(listed, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    for name in filter(None, names):
        if (ROOT / name).is_file() and not name.startswith(("docs/images", "bench/", "tests/")):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(ROOT / name, folder / name)
    return folder


def add_page(tree: Path, text: str = "<!doctype html><title>the page</title>") -> None:
    """A built page, newer than its source."""
    (tree / STATIC).mkdir(parents=True)
    (tree / STATIC / "index.html").write_text(text)
    (tree / STATIC / "licenses.txt").write_text("the licences of what is bundled")


def build(
    tree: Path, kind: str, path: str | None = None, **environment: str
) -> subprocess.CompletedProcess[str]:
    """Build a `wheel`, an `sdist` or an `editable` into dist/; `path` is where programs are looked for."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MILLPOND_")}
    kept |= environment | ({} if path is None else {"PATH": path})
    (tree / "dist").mkdir(exist_ok=True)
    code = f"import hatchling.build; hatchling.build.build_{kind}('dist')"  # as pip and `python -m build` do
    words = [sys.executable, "-c", code]
    return subprocess.run(words, cwd=tree, env=kept, capture_output=True, text=True, timeout=600, check=False)


def built(tree: Path, ending: str) -> Path:
    """The one file in dist/ with this ending."""
    (found,) = (tree / "dist").glob(f"*{ending}")
    return found
