"""A node of these proofs: `python -m tests.proof_recurring.member LEASE GRACE READY [usurper]`.

A usurper believes that it leads, whatever the store says.
"""

from __future__ import annotations

import sys


def main() -> int:
    """Be a node until a signal ends it."""
    import logging
    from pathlib import Path

    from millpond import Node
    from millpond.node.process.foreground import serve
    from millpond.orchestrator import skip_log
    from millpond.orchestrator.leader import Leadership
    from tests.proof_recurring import jobs

    skip_log.KEEP = 1_000_000  # so that every reason can be judged in the end
    if "usurper" in sys.argv:
        Leadership.is_leader = property(lambda _: True)  # type: ignore[assignment,method-assign]
        Leadership.attend = lambda self: True  # type: ignore[method-assign]
    logging.basicConfig(format="%(asctime)s %(levelname)s %(message)s", level=logging.INFO)
    lease, grace, ready = sys.argv[1:4]
    node = Node(jobs.app, lease=float(lease), grace=float(grace))
    return serve(node, grace=float(grace), ready=Path(ready).touch)


if __name__ == "__main__":
    sys.exit(main())
