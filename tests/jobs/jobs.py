"""Jobs as values, for tests that need one."""

from typing import Any

import msgspec

from millpond.job import DAY, Job, JobOptions, JobState

NOW = 1_800_000_000_000_000
HOUR = 3_600_000_000

RUNNING = Job(
    id="01890000-0000-7000-8000-000000000001",
    task="images.resize",
    queue="images",
    state=JobState.RUNNING,
    reason=None,
    priority=1,
    rank=NOW - HOUR - DAY,
    run_at=NOW - HOUR,
    created_at=NOW - 2 * HOUR,
    started_at=NOW - HOUR // 2,
    finished_at=None,
    expires_at=None,
    attempt=2,
    errors=1,
    crashes=1,
    lost=1,
    token=3,
    node="host-1-a",
    alone=False,
    cancelling=False,
    unique=None,
    slots=(),
    depends_on=(),
    options=JobOptions(),
    payload=b"{}",
)


def job(**changes: Any) -> Job:
    """A running job, but for these fields; `options` may be given as a dict."""
    if isinstance(changes.get("options"), dict):
        changes["options"] = JobOptions(**changes["options"])
    return msgspec.structs.replace(RUNNING, **changes)
