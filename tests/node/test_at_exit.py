"""What a node leaves to the program around it: an end without waiting, and the ends of its own children."""

from __future__ import annotations

import subprocess
import sys

# Speaks to a store that never answers, in a thread as the claim loop is one, and ends.
SILENT = """
import threading
from millpond.node.jobs.exchange import Speaker
from millpond.store.protocol import Said

class Silent:
    works_elsewhere = True
    def exchange(self, *_, **__):
        asked.set()
        threading.Event().wait()

asked = threading.Event()
speaker = Speaker(Silent())
say = lambda: speaker.say_meanwhile("node", 1, Said((), (), (), ()), lambda: None)
threading.Thread(target=say, daemon=True).start()
asked.wait()
speaker.close()
print("the end")
"""

# Starts children before and after the collector's lists are frozen, and an undertaker that looks at both.
CHILDREN = """
import ctypes, os, subprocess
from millpond.node.process.reaper import Undertaker
from millpond.node.process.foreground import rare_collections

def dead(code):
    child = subprocess.Popen(["sh", "-c", f"exit {code}"])
    os.waitid(os.P_PID, child.pid, os.WEXITED | os.WNOWAIT)
    return child

ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
before = dead(7)
with rare_collections():
    after, undertaker = dead(8), Undertaker()
    nobodys = os.posix_spawn("/bin/sh", ["sh", "-c", "exit 9"], os.environ)
    os.waitid(os.P_PID, nobodys, os.WEXITED | os.WNOWAIT)
    first, second = undertaker.look(), undertaker.look()
    print(undertaker.needed, first, second == [nobodys], before.wait(), after.wait())
"""


def said_by(program: str) -> str:
    """What a program prints that ends by itself."""
    command = [sys.executable, "-c", program]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=True).stdout


def test_a_program_ends_while_its_node_waits_for_a_server_that_says_nothing():
    assert said_by(SILENT) == "the end\n"


def test_children_that_were_started_before_the_node_keep_their_exit_codes():
    assert said_by(CHILDREN) == "True [] True 7 8\n"


def test_a_worker_that_leaves_sends_the_spans_that_were_gathered(local, start, tmp_path):
    @local.task
    def traced(path: str) -> None:
        from opentelemetry import trace
        from opentelemetry.sdk.trace import TracerProvider
        from opentelemetry.sdk.trace.export import BatchSpanProcessor, ConsoleSpanExporter

        exporter = ConsoleSpanExporter(out=open(path, "w"))  # noqa: SIM115
        provider = TracerProvider()
        provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=600_000))
        trace.set_tracer_provider(provider)
        with trace.get_tracer("mine").start_as_current_span("of the job"):
            pass

    node = start(local)
    traced.enqueue(str(tmp_path / "spans")).result(timeout=30)
    node.stop(20.0)
    assert "of the job" in (tmp_path / "spans").read_text()
