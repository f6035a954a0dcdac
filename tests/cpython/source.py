"""Where CPython's executor tests come from on this machine.

Candidates, best first: the interpreter's own test tree; a distribution's test-suite package,
installed or unpacked into the repository's ``.cache``; the tree of a neighbouring interpreter. The
first one whose tests import here is taken. Nothing is ever installed system-wide.
"""

from __future__ import annotations

import functools
import json
import os
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from .environment import run_inside

NAME = "test_concurrent_futures"
OWN_VERSION = sys.version_info[:2]
LENDERS = ((3, 13), (3, 12))
CACHE = Path(__file__).parents[2] / ".cache" / "cpython-tests"
PACKAGE_LISTS = Path("/var/lib/apt/lists")
APT_OPTIONS = ("-o", "Acquire::Retries=0", "-o", "Acquire::http::Timeout=15")

Version = tuple[int, int]


class Unavailable(Exception):
    """No candidate gave usable tests; the message says why each was refused."""


@dataclass(frozen=True)
class Source:
    """A test tree: which Python's tests they are, and the folders grafted onto ``test``."""

    version: Version
    folders: tuple[Path, ...]
    origin: str

    @property
    def borrowed(self) -> bool:
        """Whether these are the tests of a newer Python than the one that runs them."""
        return self.version > OWN_VERSION


@dataclass(frozen=True)
class Inventory:
    """The tests that a source holds, as (dotted id, executor family) pairs."""

    source: Source
    tests: tuple[tuple[str, str], ...]


@functools.cache
def inventory() -> Inventory:
    """The tests of the best usable source; raises Unavailable."""
    refusals: list[str] = []
    for source in _candidates(refusals):
        listed = run_inside(["--list"], folders=source.folders)
        if listed.returncode == 0:
            rows = json.loads(listed.stdout)
            return Inventory(source, tuple((row["id"], row["family"]) for row in rows))
        refusals.append(f"{source.origin}: {listed.stderr.strip().splitlines()[-1:]}")
    raise Unavailable("CPython's executor tests cannot be had: " + "; ".join(refusals))


def _candidates(refusals: list[str]) -> Iterator[Source]:
    own = Path(sysconfig.get_path("stdlib"), "test")
    if _holds_tests(own):
        yield Source(OWN_VERSION, (), "this interpreter")
    else:
        refusals.append("this interpreter ships no executor tests")
    yield from _packaged(OWN_VERSION, refusals)
    for version in LENDERS:
        yield from _lent(version, refusals)
    for version in ((3, 13), (3, 11)):
        yield from _packaged(version, refusals)


def _holds_tests(folder: Path) -> bool:
    return (folder / f"{NAME}.py").exists() or (folder / NAME / "test_process_pool.py").exists()


def _packaged(version: Version, refusals: list[str]) -> Iterator[Source]:
    """The Debian package with the tests: installed, unpacked earlier, or fetched now."""
    label = _label(version)
    installed = Path(f"/usr/lib/python{label}/test")
    if _holds_tests(installed):
        yield Source(version, (installed,), f"the installed test suite of Python {label}")
        return
    unpacked = CACHE / label
    if not _holds_tests(unpacked):
        try:
            _fetch(version, unpacked)
        except (OSError, subprocess.SubprocessError) as error:
            refusals.append(f"libpython{label}-testsuite: {error}")
            return
    yield Source(version, (unpacked,), f"the packaged test suite of Python {label}")


def _fetch(version: Version, destination: Path) -> None:
    """Unpack the tests (and ``test.support`` where the interpreter lacks it) into the cache."""
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb") and os.geteuid() == 0):
        raise OSError("fetching it needs root and apt-get")
    label = _label(version)
    packages = [f"libpython{label}-testsuite"]
    if not Path(sysconfig.get_path("stdlib"), "test", "support").exists():
        packages.append(f"libpython{label}-stdlib")
    CACHE.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE) as scratch:
        _download(packages, scratch)
        for archive in Path(scratch).glob("*.deb"):
            _command(["dpkg-deb", "-x", archive.name, "unpacked"], scratch)
        tests = Path(scratch, "unpacked", "usr", "lib", f"python{label}", "test")
        kept = Path(scratch, "kept")
        kept.mkdir()
        for entry in (f"{NAME}.py", NAME, "support"):
            if (tests / entry).exists():
                shutil.move(tests / entry, kept / entry)
        kept.chmod(0o755)
        if not destination.exists():  # another run may have been faster
            kept.rename(destination)


def _download(packages: list[str], folder: str) -> None:
    if not any(PACKAGE_LISTS.glob("*_Packages*")):
        _command(["apt-get", *APT_OPTIONS, "update"], folder)
    _command(["apt-cache", "show", *packages], folder)  # fails at once for what nobody offers
    try:
        _command(["apt-get", *APT_OPTIONS, "download", *packages], folder)
    except subprocess.CalledProcessError:
        # The lists may name a version that the archive has since replaced.
        _command(["apt-get", *APT_OPTIONS, "update"], folder)
        _command(["apt-get", *APT_OPTIONS, "download", *packages], folder)


def _command(words: list[str], folder: str) -> None:
    subprocess.run(words, cwd=folder, check=True, capture_output=True, timeout=120)


def _lent(version: Version, refusals: list[str]) -> Iterator[Source]:
    label = _label(version)
    for python in _interpreters(label):
        asked = subprocess.run(
            [python, "-c", "import sysconfig; print(sysconfig.get_path('stdlib'))"],
            capture_output=True,
            text=True,
            check=False,
        )
        folder = Path(asked.stdout.strip(), "test")
        if asked.returncode == 0 and _holds_tests(folder):
            yield Source(version, (folder,), f"a neighbouring Python {label}")
            return
    refusals.append(f"no Python {label} found that could lend its tests")


def _interpreters(label: str) -> Iterator[str]:
    found = shutil.which(f"python{label}")
    if found:
        yield found
    versions = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"), "versions")
    yield from (str(path) for path in sorted(versions.glob(f"{label}*/bin/python{label}")))


def _label(version: Version) -> str:
    return f"{version[0]}.{version[1]}"
