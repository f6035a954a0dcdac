"""One measured run in this fresh process: `measure.py PEER SCENARIO full|quick RESULT_FILE`.

Started by run.py, which bounds its time and ends whatever it leaves behind.
"""

import os
import sys

from peers import PEERS
from scenarios import SCENARIOS
from sizes import FULL, QUICK
from values import Values


def main() -> None:
    peer, scenario, size, target = sys.argv[1:]
    values: Values = {}
    note = ""
    try:
        values = SCENARIOS[scenario].measure(PEERS[peer](), QUICK if size == "quick" else FULL)
    except Exception as error:  # a library that fails is a finding, not an accident
        note = f"{type(error).__name__}: {error}"[:200]
    import json  # only now: what was measured did not pay for it

    with open(target, "w") as out:
        json.dump({"values": values, "note": note}, out)
    # Leave at once: some libraries never return from their own exit handlers.
    os._exit(0)


if __name__ == "__main__":
    main()
