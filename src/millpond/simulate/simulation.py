"""What becomes of a workload under a policy, with or without a budget that its jobs share.

Refuses what would take for ever before it begins.
"""

from __future__ import annotations

import operator

from millpond.errors import OptionError
from millpond.simulate.budget import Rationed
from millpond.simulate.engine import DAY, LONGEST, Simulation
from millpond.simulate.records import Law, Run, Setting, Workload


def simulate(workload: Workload, law: Law, setting: Setting) -> Run:
    """What becomes of these jobs under this policy."""
    _check(workload, setting)
    if setting.budget is not None and (workload.needs or workload.peaks):
        return Rationed(workload, law, setting).run()
    return Simulation(workload, law, setting).run()


def _check(workload: Workload, setting: Setting) -> None:
    """Refuse what would take for ever."""
    last = max(map(operator.add, workload.arrivals, workload.services), default=0.0)
    if not last <= LONGEST:
        raise OptionError(
            f"{workload.name} lasts {last / DAY:,.0f} days, and at most {LONGEST / DAY:g} can be simulated: "
            "take a part of it, or see whether its times are in another unit than seconds"
        )
    if workload.work > LONGEST * setting.limits.most:
        raise OptionError(
            f"{workload.name} is {workload.work / DAY:,.0f} days of work, which {setting.limits.most} "
            f"workers do not finish in {LONGEST / DAY:g} days: let there be more of them"
        )
