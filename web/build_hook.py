"""Builds the dashboard while hatchling builds a wheel or an sdist: no package shall come without its page.

A source tree needs npm for that; an unpacked sdist brings the built page along. An editable installation
never builds it (`make web` does). MILLPOND_NO_WEB=1 makes a package without the page on purpose.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

STATIC = "src/millpond/web/static"
PATIENCE = 600.0  # seconds for npm to fetch its packages and to build
HOW = (
    "Install Node.js 20 or newer and build again, or make a package without the dashboard: "
    "MILLPOND_NO_WEB=1 in the environment (the HTTP API and everything else work without it)."
)


class PageHook(BuildHookInterface[Any]):
    """Puts the built page into what is built, or ends the build."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the page if it is missing or older than its source."""
        if version == "editable" or os.environ.get("MILLPOND_NO_WEB", "") not in {"", "0"}:
            return
        root = Path(self.root)
        if not is_current(root):
            self._build(root / "web")
        build_data["artifacts"].append(STATIC)

    def _build(self, web: Path) -> None:
        npm = shutil.which("npm")
        if npm is None:
            self.app.abort(f"The dashboard is not built, and npm, which builds it, is not here. {HOW}")
        for words in (["ci", "--ignore-scripts"], ["run", "build"]):
            command = [str(npm), "--silent", *words]
            try:
                subprocess.run(command, cwd=web, check=True, timeout=PATIENCE, stdin=subprocess.DEVNULL)
            except (OSError, subprocess.SubprocessError) as error:
                self.app.abort(f"The dashboard could not be built: {error}. {HOW}")


def is_current(root: Path) -> bool:
    """Is there a page that nothing it is made of is newer than?"""
    page = root / STATIC / "index.html"
    if not page.is_file():
        return False
    if (root / "PKG-INFO").is_file():  # an unpacked sdist: its page was built from its own source
        return True
    web = root / "web"
    made_of = [web / "package-lock.json", web / "build.mjs", web / "tsconfig.json", *(web / "src").rglob("*")]
    return max(path.stat().st_mtime for path in made_of) <= page.stat().st_mtime
