"""Writes docs/reference/states.md from the state table in rules/jobs/lifecycle.py; a test keeps them equal.

Run: python docs/generate_states.py > docs/reference/states.md
"""

from millpond.job import ENDS, WAITING, JobState
from millpond.rules.jobs.lifecycle import STEPS

MEANINGS = {
    JobState.BLOCKED: "waits for jobs it depends on",
    JobState.SCHEDULED: "waits for its time: its first, or that of its next attempt",
    JobState.QUEUED: "in line",
    JobState.RUNNING: "claimed by a node, which holds a lease",
    JobState.COMPLETED: "returned",
    JobState.DEAD: "will not run again unless replayed",
    JobState.CANCELLED: "will not run",
}


def page() -> str:
    """The whole page."""
    lines = [
        "# The states of a job",
        "",
        "Made from the table in `src/millpond/rules/jobs/lifecycle.py` by `docs/generate_states.py`.",
        "Whatever is not here cannot happen.",
        "",
        "```mermaid",
        "stateDiagram-v2",
        *(f"    [*] --> {state}: enqueued" for state in JobState if state in WAITING),
        *(f"    {before} --> {after}: {cause}" for (before, after), cause in STEPS.items()),
        *(f"    {state} --> [*]: pruned" for state in sorted(ENDS)),
        "```",
        "",
        "| state | means |",
        "|---|---|",
        *(f"| `{state}` | {meaning} |" for state, meaning in MEANINGS.items()),
        "",
        "| from | to | when |",
        "|---|---|---|",
        *(f"| `{before}` | `{after}` | {cause} |" for (before, after), cause in STEPS.items()),
    ]
    return "\n".join(lines)


if __name__ == "__main__":
    print(page())
