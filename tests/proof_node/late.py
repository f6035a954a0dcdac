"""A node that does not keep its word: it leaves with exit code 0, and long after its grace.

`python -m tests.proof_node.late LEASE GRACE READY`, as `member`, and no node at all.
"""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path

from tests.proof_node.fleet import EXIT


def main() -> int:
    _, grace, ready = sys.argv[1:]
    signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGTERM})
    Path(ready).touch()
    signal.sigwait({signal.SIGTERM})
    time.sleep(float(grace) + EXIT + 0.2)  # the fault itself
    return 0


if __name__ == "__main__":
    sys.exit(main())
