"""The two trees of a comparison: an older commit, checked out beside this one for as long as it lasts."""

import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / "build" / "compare"


class Tree(NamedTuple):
    """A checked out commit."""

    name: str
    root: Path


class UnknownCommit(Exception):
    """There is no such commit here; the text says what to do."""


@contextmanager
def both(revision: str) -> Iterator[tuple[Tree, Tree]]:
    """The older commit and this tree, as it is now, committed or not."""
    commit = _git("rev-parse", "--short", "--verify", "--quiet", f"{revision}^{{commit}}")
    if not commit:
        raise UnknownCommit(f"{revision!r} names no commit of this repository: fetch it, or see `git log`")
    older = Tree(commit, FOLDER / commit)
    _forget(older)  # a run that was killed leaves its tree behind
    _git("worktree", "add", "--detach", "--force", str(older.root), commit, must=True)
    try:
        yield older, Tree("this tree", ROOT)
    finally:
        _forget(older)


def _forget(tree: Tree) -> None:
    _git("worktree", "remove", "--force", str(tree.root))
    shutil.rmtree(tree.root, ignore_errors=True)
    _git("worktree", "prune")


def _git(*words: str, must: bool = False) -> str:
    done = subprocess.run(("git", "-C", str(ROOT), *words), capture_output=True, text=True, check=False)
    if must and done.returncode != 0:
        raise RuntimeError(f"git {' '.join(words)}: {done.stderr.strip()}")
    return done.stdout.strip()
