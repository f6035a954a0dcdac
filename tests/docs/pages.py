"""The documentation as data: its pages, their Python blocks, links, headings and tables. Runs nothing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[2]
PAGES = sorted([ROOT / "README.md", ROOT / "CHANGELOG.md", *(ROOT / "docs").rglob("*.md")])
SKIP = "<!-- skip -->"

# Written by `bench/pool/run.py --write`, so they may be missing from a fresh tree.
GENERATED = {ROOT / "docs" / "benchmarks.md", ROOT / "docs" / "pictures" / "bench-pool.png"}

_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_CODE = re.compile(r"`([^`]+)`")


def title(page: Path) -> str:
    return str(page.relative_to(ROOT))


def script(page: Path) -> str:
    """The page's Python blocks as one program whose line numbers are those of the page."""
    lines: list[str] = []
    inside, last = False, ""
    for line in page.read_text(encoding="utf-8").splitlines():
        if line.startswith("```"):
            inside = line == "```python" and last != SKIP
            lines.append("")
        else:
            lines.append(line if inside else "")
        last = line.strip() or last
    return "\n".join(lines)


def blocks(page: Path) -> list[str]:
    """The page's Python blocks, one by one."""
    text = page.read_text(encoding="utf-8")
    return re.findall(r"^```python\n(.*?)^```$", text, flags=re.DOTALL | re.MULTILINE)


def prose(page: Path) -> str:
    """The page without its fenced blocks."""
    return re.sub(r"^```.*?^```$", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.MULTILINE)


def links(page: Path) -> Iterator[tuple[Path, str]]:
    """(file, anchor) of every link that stays in the repository."""
    for target in _LINK.findall(prose(page)):
        if "://" not in target:
            path, _, anchor = target.partition("#")
            yield ((page.parent / path).resolve() if path else page), anchor


def anchors(page: Path) -> set[str]:
    """What a link to this page may name, by GitHub's rule."""
    headings = re.findall(r"^#+ (.+)$", prose(page), flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def section(page: Path, heading: str) -> str:
    """The text under a heading, up to the next one of the same or a higher level."""
    level = heading.split(" ", maxsplit=1)[0]
    text = page.read_text(encoding="utf-8")
    start = text.index(f"\n{heading}\n") + len(heading) + 2
    end = re.search(rf"^#{{1,{len(level)}}} ", text[start:], flags=re.MULTILINE)
    return text[start : start + end.start()] if end else text[start:]


def rows(text: str) -> list[list[str]]:
    """The rows of the tables in a text, without their heads."""
    lines = [line for line in text.splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    rules = [number for number, row in enumerate(cells) if set("".join(row)) <= set("-: ")]
    heads = {*rules, *(number - 1 for number in rules)}
    return [row for number, row in enumerate(cells) if number not in heads]


def code(text: str) -> list[str]:
    """Everything in backticks, in order."""
    return _CODE.findall(text)
