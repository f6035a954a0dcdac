"""`millpond` as on a machine of its own: other nodes here must not see that its process is gone.

A node notices at once when another one of the same machine dies. To time what happens when a whole machine
is lost, where only the lease tells, each node gets a place of its own.
"""

import os

from millpond.cli import main
from millpond.node.lease import identity

identity._namespace = lambda: f"apart-{os.getpid()}"

if __name__ == "__main__":
    main()
