"""A module whose import reports the process that imports it, and then never ends."""

import os
from pathlib import Path

from tests.pool.wedges import STILL

Path(os.environ["WEDGED_PRELOAD"]).write_text(str(os.getpid()))
STILL[os.environ["WEDGED_HOW"]]()
