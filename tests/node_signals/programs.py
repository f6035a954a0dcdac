"""Real processes that obey signals: a stand-in for a node, and `millpond run` itself; read line by line."""

from __future__ import annotations

import os
import queue
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).parents[2]
MILLPOND = Path(sys.executable).with_name("millpond")
PATIENCE = 40.0

# A node that says what it is told. It stops when it is killed, or told so on its standard input.
STAND_IN = """
import logging, sys, threading
from millpond.node.process import reaper as orphans
from millpond.node.observability.report import NodeReport
from millpond.node.process.foreground import serve

logging.basicConfig(stream=sys.stderr, level=logging.INFO)

def say(text):
    print(text, flush=True)

class StandIn:
    def __init__(self):
        self.ended = threading.Event()
        self.held = False
    def start(self): say("start")
    def drain(self, grace, reason):
        say(f"drain {grace:g}")
    def hurry(self): say("hurry")
    def kill(self):
        say("kill")
        if "stubborn" not in sys.argv: self.ended.set()
    def hold(self):
        say("hold")
        self.held = True
    def go_on(self):
        say("go on")
        self.held = False
    def wait(self, timeout): return self.ended.wait(timeout)
    def report(self):
        return NodeReport("n", "h", 1, "running", "s", "d", 0.0, 0.0, 9.0, None, 0, 0, 0, 0, 0, 0, ())

def read(node):
    for line in sys.stdin:
        say(f"held {node.held}" if line.startswith("held") else f"told {line.strip()}")
        if line.strip() == "stop": node.ended.set()

def reload():
    say("reload")
    if "wrong" in sys.argv: raise ValueError("no such setting")
    return 7.0

node = StandIn()
threading.Thread(target=read, args=(node,), daemon=True).start()

def ready():
    if "mute" in sys.argv: raise OSError("nobody listens")
    say("ready")

def no_descriptor(_):
    raise OSError("too many open files")

if "blind" in sys.argv: orphans.Undertaker.look = no_descriptor
code = serve(node, grace=25.0, reload=reload, ready=ready)
say(f"served {code}")
sys.exit(code)
"""


class Program:
    """A running process whose output lines can be waited for."""

    def __init__(self, command: Sequence[str], **options: object) -> None:
        self.process: subprocess.Popen[str] = subprocess.Popen(
            list(command),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            **{"stderr": subprocess.STDOUT, **options},  # type: ignore[call-overload]
        )
        self.lines: list[str] = []
        self._new: queue.Queue[str | None] = queue.Queue()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self._new.put(line.rstrip("\n"))
        self._new.put(None)

    def until(self, text: str) -> str:
        """Wait for a line with this text that was not waited for before."""
        while True:
            line = self._new.get(timeout=PATIENCE)
            assert line is not None, f"ended without {text!r}: {self.lines}"
            self.lines.append(line)
            if text in line:
                return line

    def send(self, number: int) -> None:
        self.process.send_signal(number)

    def tell(self, line: str) -> None:
        assert self.process.stdin is not None
        self.process.stdin.write(line + "\n")
        self.process.stdin.flush()

    def code(self) -> int:
        """Wait for the end; returns the exit code."""
        code = self.process.wait(PATIENCE)
        self._reader.join(PATIENCE)
        while (line := self._new.get(timeout=PATIENCE)) is not None:
            self.lines.append(line)
        return code

    def said(self, *words: str) -> list[str]:
        """The lines that begin with one of these words."""
        return [line for line in self.lines if line.startswith(words)]


@contextmanager
def program(*command: str, **options: object) -> Iterator[Program]:
    """Start a process; whatever happens, it is gone at the end."""
    before = signal.signal(signal.SIGHUP, signal.SIG_DFL)  # tests may themselves be run under nohup
    try:
        running = Program(command, **options)
    finally:
        signal.signal(signal.SIGHUP, before)
    try:
        yield running
    finally:
        if running.process.poll() is None:
            running.process.kill()
            running.process.wait()
        for stream in (running.process.stdin, running.process.stdout):
            assert stream is not None
            running._reader.join(PATIENCE)
            stream.close()


@contextmanager
def stand_in(*words: str, **options: object) -> Iterator[Program]:
    """A stand-in that is ready."""
    with program(sys.executable, "-c", STAND_IN, *words, **options) as running:
        running.until("ready")
        yield running


def clean_environment(**variables: str) -> dict[str, str]:
    """The environment without settings from outside."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("MILLPOND_")}
    return kept | variables
