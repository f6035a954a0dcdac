"""Does growing help? Where more workers finish no more, growth is taken back.

When workers wait for something they share, a database or a disk, more of them make every job slower and none
sooner; but jobs may also have become longer by themselves, and then more workers are right. So after a
growth that brought nothing a trial is made with fewer: if as much gets finished, fewer it is, and fewer still
is tried; if less, the growth had helped. What was taken back is tried again little by little. Only stretches
of time in which jobs were waiting throughout are compared: otherwise demand sets the pace.
"""

from __future__ import annotations

import math

from msgspec.structs import replace

from millpond.rules.observation import Gain, GainWindow, Line, Observation

GROWTH = math.log(1.2)  # more workers than in the reference, so that a difference can be told
RAISED = 0.5  # of the growth: what the rate must rise by at least
INFLATED = math.log(1.3)  # what runs must have grown by
SURE = 2.0  # standard errors
TIMES_SERVICE = 3.0  # a window lasts this many runs
SHORTEST, LONGEST = 5.0, 60.0  # seconds
LEAST_RUNS, FEW_RUNS = 100, 20
TRIAL = 0.6  # of the workers
LIFT = 1.1
LONGEST_WAIT = 600.0  # seconds at a cap before a few more are tried; it begins with a minute and doubles
QUIET = 600.0  # seconds after a trial that showed that growth helps
NOTHING = Gain()


def learned(observation: Observation, line: Line, gain: Gain, now: float) -> Gain:
    """What is known after this observation, whose tasks together are `line`."""
    if gain.cap is not None:
        gain = _lifted(observation, gain, now)
    if not observation.busy or not line.waiting:
        return gain if gain.window is None else replace(gain, window=None)
    if gain.before is not None and gain.cap is not None and observation.busy > gain.cap + 0.5:
        return replace(gain, window=None)  # a trial begins when those beyond it have left
    window = gain.window
    if window is None:
        window = GainWindow(now, line.completed, line.logs, line.squares)
    else:
        window = GainWindow(
            window.began_at,
            window.completed,
            window.logs,
            window.squares,
            window.workers + observation.busy,
            window.samples + 1,
        )
        closed = _closed(window, line, now)
        if closed is not None:
            judge = _judged if gain.before is None else _tried
            return judge(closed, replace(gain, window=None), observation, now)
    return replace(gain, window=window)


def _closed(window: GainWindow, line: Line, now: float) -> GainWindow | None:
    """The window with its figures, once it has lasted long enough to tell something."""
    lasted = now - window.began_at
    runs = line.completed - window.completed
    if lasted < SHORTEST or runs < FEW_RUNS or (runs < LEAST_RUNS and lasted < LONGEST):
        return None
    if lasted < min(TIMES_SERVICE * line.work / line.waiting, LONGEST):
        return None
    log = (line.logs - window.logs) / runs
    spread = max(0.0, (line.squares - window.squares) / runs - log * log)
    return replace(
        window,
        completed=runs,
        rate=runs / lasted,
        log=log,
        error=math.sqrt(spread / runs),
        workers=window.workers / window.samples,
    )


def _judged(closed: GainWindow, gain: Gain, observation: Observation, now: float) -> Gain:
    """Compare a window with the last one that had clearly fewer workers; a suspicion begins a trial.

    Under a cap nothing needs to be proven again: what was lifted goes back unless it has brought something.
    """
    fewer = gain.reference
    if fewer is None or closed.workers < fewer.workers * math.exp(GROWTH):
        if fewer is not None and (fewer.workers < closed.workers or gain.cap is not None):
            return gain  # go on comparing with the smaller one until the difference is large enough
        return replace(gain, reference=closed)
    growth = math.log(closed.workers / fewer.workers)
    doubt = SURE * math.hypot(closed.error, fewer.error)
    rose = math.log(closed.rate / fewer.rate) > RAISED * growth
    if gain.cap is not None and not rose:
        wait = min(2.0 * gain.lift_after, LONGEST_WAIT)
        return replace(gain, cap=fewer.workers, moved_at=now, lift_after=wait)
    inflated = closed.log - fewer.log > INFLATED + doubt
    if rose or not inflated or now < gain.quiet_until:
        return replace(gain, reference=closed)
    return _trial(closed, gain, _fewer(closed, observation), now)


def _fewer(closed: GainWindow, observation: Observation) -> float:
    """What a trial is made with. Never below the minimum: those who stay anyway would never let it begin."""
    return max(1.0, observation.limits.least, TRIAL * closed.workers)


def _trial(closed: GainWindow, gain: Gain, cap: float, now: float) -> Gain:
    return replace(gain, cap=cap, before=closed, reference=None, moved_at=now)


def _tried(closed: GainWindow, gain: Gain, observation: Observation, now: float) -> Gain:
    """A trial with fewer workers is over: did it cost anything? At the minimum it was the last one."""
    before = gain.before
    assert before is not None
    fell = math.log(before.rate / closed.rate)
    shorter = before.log - closed.log
    if fell < shorter:  # no less was finished, each sooner
        fewer = _fewer(closed, observation)
        if fewer >= closed.workers:
            return _settled(closed, gain, now)
        return replace(_trial(closed, gain, fewer, now), proven=True)
    if gain.proven:  # this step went too far, the one before had not
        return _settled(before, gain, now)
    return replace(NOTHING, quiet_until=now + QUIET)


def _settled(found: GainWindow, gain: Gain, now: float) -> Gain:
    """As many as worked then, from now on, and more are compared with that."""
    return replace(gain, cap=found.workers, before=None, reference=found, moved_at=now, proven=False)


def _lifted(observation: Observation, gain: Gain, now: float) -> Gain:
    """Try a little more after a while; forget the cap when it is beyond the pool's size."""
    assert gain.cap is not None
    waited = now - gain.moved_at
    if gain.before is not None:  # a trial that cannot end, since too little is finished or nothing waits
        return gain if waited < 4 * LONGEST else replace(NOTHING, quiet_until=now + QUIET)
    if waited < gain.lift_after:
        return gain
    if gain.cap >= observation.limits.most:
        return NOTHING
    return replace(gain, cap=max(gain.cap + 1.0, gain.cap * LIFT), moved_at=now)
