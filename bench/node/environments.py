"""Where each peer lives: an environment of its own under .venv-peers, made at first use with pinned versions.

Millpond, too: from this tree, with what a user of these stores installs and nothing that its tests need. The
index comes from the environment of the caller. What is there already is never touched.
"""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FOLDER = ROOT / ".venv-peers"
REDIS = ("redis==8.1.0", "hiredis==3.5.0")
PSYCOPG = ("psycopg[binary]==3.3.8",)
UVLOOP = ("uvloop==0.23.0",)

PINNED: dict[str, tuple[str, ...]] = {
    "millpond": ("-c", str(ROOT / "constraints.txt"), "-e", f"{ROOT}[postgres,redis]"),
    "celery": ("celery==5.7.0", "kombu==5.7.0", "packaging==26.3", *REDIS),
    "rq": ("rq==2.12.0", *REDIS),
    "dramatiq": ("dramatiq[redis]==2.2.1", *REDIS),
    "huey": ("huey==3.5.4", *REDIS),
    "saq": ("saq[redis]==0.26.4", "redis==7.4.1", "hiredis==3.5.0", "typing-extensions==4.16.0", *UVLOOP),
    "arq": ("arq==0.28.0", "redis==5.3.1", "hiredis==3.5.0", *UVLOOP),
    "taskiq": ("taskiq==0.13.0", "taskiq-redis==1.2.4", *REDIS, *UVLOOP),
    "procrastinate": ("procrastinate==3.10.0", *PSYCOPG),
    "pgqueuer": ("pgqueuer[asyncpg]==1.6.0", "asyncpg==0.32.0", *UVLOOP),
}
BULLMQ = ("bullmq@6.7.0", "ioredis@6.0.0")


class Unavailable(Exception):
    """A peer cannot be measured here; the text says why."""


def ensure(name: str) -> Path:
    """The folder with a peer's programs, made now if it is not there."""
    place = FOLDER / name
    stamp = place / ".installed"
    wanted = "\n".join(BULLMQ if name == "bullmq" else PINNED[name])
    if not stamp.exists() or stamp.read_text() != wanted:
        print(f"Making the environment of {name}", file=sys.stderr, flush=True)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        for command in _node_steps(place) if name == "bullmq" else _python_steps(place, PINNED[name]):
            _run(name, command)
        stamp.write_text(wanted)
    return place / ("node_modules" if name == "bullmq" else "bin")


def _python_steps(place: Path, packages: tuple[str, ...]) -> list[list[str]]:
    python = str(place / "bin" / "python")
    if shutil.which("uv"):
        make = ["uv", "venv", "--quiet", "--allow-existing", "--python", sys.executable, str(place)]
        return [make, ["uv", "pip", "install", "--quiet", "--python", python, *packages]]
    return [
        [sys.executable, "-m", "venv", str(place)],
        [python, "-m", "pip", "install", "--quiet", *packages],
    ]


def _node_steps(place: Path) -> list[list[str]]:
    if shutil.which("node") is None or shutil.which("npm") is None:
        raise Unavailable("Node.js with npm is not on this machine")
    return [["npm", "install", "--silent", "--no-fund", "--no-audit", "--prefix", str(place), *BULLMQ]]


def _run(name: str, command: list[str]) -> None:
    environment = {key: value for key, value in os.environ.items() if key != "VIRTUAL_ENV"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    if done.returncode != 0:
        raise Unavailable(f"{name} could not be installed: {(done.stderr or done.stdout)[-600:].strip()}")
