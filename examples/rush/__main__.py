"""`python -m examples.rush`."""

from __future__ import annotations

import sys

from examples.rush.rush import main

if __name__ == "__main__":
    sys.exit(main())
