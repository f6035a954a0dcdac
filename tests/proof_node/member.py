"""A node of these proofs, as a process: `python -m tests.proof_node.member LEASE GRACE READY`.

It makes the file READY once it serves, and leaves with the exit code of a node in the foreground.
"""

from __future__ import annotations

import logging
import sys
from pathlib import Path

from millpond import Node
from millpond.node.process.foreground import serve
from tests.history import witnessed


def main() -> int:
    """Be a node until a signal ends it."""
    from tests.proof_node import jobs

    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    lease, grace, ready = sys.argv[1:]
    node = Node(jobs.app, lease=float(lease), grace=float(grace))
    witnessed(node._state.heart, jobs.evidence)
    return serve(node, grace=float(grace), ready=Path(ready).touch)


if __name__ == "__main__":
    sys.exit(main())
