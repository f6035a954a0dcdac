"""The history checker: judges a run by evidence that was kept outside its store.

What it holds against a run: each acknowledged job has an effect and exactly one end; no write under a token
that had been overtaken was accepted; nothing ran twice, or two at a time, unless something that was done to
that very worker or node explains it; attempts are charged only for what began; budgets are kept exactly.

How to use it in a run that breaks things:

1.  The module of the app, which every node and worker imports::

        evidence = Evidence.from_environment()
        app = App(witnessed(open_store(os.environ["STORE"]), evidence))   # notes claims, settlements

        @app.task
        def resize(n: int) -> int:
            with evidence.execution():      # began, and how it left
                ...
                evidence.effect()           # what the job is for
                return n

    A function that ends its own worker notes `evidence.breaking()` first, one that runs into its timeout
    `evidence.breaking(hangs=True)`.

2.  The one who breaks things starts each node process with a label that no other ever has, and notes each
    fault around what he does, so that all of it lies between two lines::

        evidence = Evidence(folder)                                   # not in the store's own directory
        Popen(["millpond", "run", "jobs:app"], env=os.environ | evidence.environment("n1"))
        evidence.kill(worker_pid)                                     # SIGKILL of a worker
        evidence.kill(node_pid, node="n1")                            # of a supervisor, or its template
        with evidence.fault(Kind.STOPPED, pid=node_pid, node="n1"):   # SIGSTOP ... SIGCONT
            ...
        with evidence.fault(Kind.TERMINATED, pid=node_pid, node="n1"):  # SIGTERM until it has left
            ...
        with evidence.fault(Kind.CUT, node="n1"): ...                 # it cannot reach the store
        with evidence.fault(Kind.STORE): ...                          # nobody can

    Kind.FROZEN is a node with its template and workers, suspended together: the one fault after which a slot
    may be too full. What a fault explains is in `faults.py`.

3.  When the run is drained::

        violations = judge(read(folder), finals(store), Rules(ends={poison: ["dead(crashed)"]}))
        assert not violations, [str(violation) for violation in violations]

    `Rules` declares what this run allows beyond completing: other ends, replays, a run that is not drained.
    What may end dead because it was unlucky too often is declared for all: `Rules(also=["dead(crashed)"])`.

`worker` in an attempt's line in the store is taken to be the worker's pid.
"""

from tests.history.entries import Entry, How, Kind
from tests.history.evidence import Evidence, now, read
from tests.history.judge import judge
from tests.history.rules import Bug, Rules, Violation
from tests.history.witness import finals, witnessed

__all__ = [
    "Bug",
    "Entry",
    "Evidence",
    "How",
    "Kind",
    "Rules",
    "Violation",
    "finals",
    "judge",
    "now",
    "read",
    "witnessed",
]
