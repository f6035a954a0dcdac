"""The sections of the page that are of a real node: a compressed day beside its simulation, and the rush."""

# ruff: noqa: E501 - a page is text, and its lines are those of the other pages

from typing import Any

Result = dict[str, Any]


def sections(trace: Result | None, rush: Result | None) -> list[str]:
    """What there is of them."""
    lines: list[str] = []
    if trace is not None:
        lines += ["", "## A node beside the simulator", "", _trace(trace)]
    if rush is not None:
        lines += ["", "## Noon, on a node", "", _rush(rush)]
    return lines


def _trace(found: Result) -> str:
    rows = [
        "| seed | jobs | start of a worker | worker-hours | simulated | off by | p95 wait | simulated | off by | most workers | simulated | met |",
        "|---|---|---|---|---|---|---|---|---|---|---|---|",
    ]
    for run in found["runs"]:
        hours, wait = run["worker_hours_off_by"], run["p95_wait_off_by"]
        met = abs(hours) <= 0.10 and abs(wait) <= 0.25
        rows.append(
            f"| {run['seed']} | {run['jobs']:,} | {1000 * run['start_cost']:.0f} ms | {run['worker_hours']:.3f} | {run['worker_hours_predicted']:.3f} | "
            f"{100 * hours:+.1f} % | {run['p95_wait']:.2f} s | {run['p95_wait_predicted']:.2f} s | {100 * wait:+.1f} % | "
            f"{run['most_workers']} | {run['most_workers_predicted']} | {'yes' if met else '**no**'} |"
        )
    return (
        f"An office day pressed into {found['minutes']:g} minutes, really run by a node and simulated for the very same jobs. Needed: worker-hours within 10 %,\n"
        "p95 wait within 25 %.\n\n" + "\n".join(rows)
    )


def _rush(found: Result) -> str:
    rows = [
        "| claim | measured | needed | met |",
        "|---|---|---|---|",
        *(_claim(*claim) for claim in _claims(found)),
    ]
    return (
        f"{found['jobs']:,} jobs for images ({1000 * found['seconds_each']:.0f} ms each, at most {found['most']} workers) come at once, beside a steady stream of mail\n"
        f"({found['mails']:,} mails, p50 {found['mail_wait_p50']:.3f} s, p95 {found['mail_wait_p95']:.3f} s), on SQLite.\n\n"
        + "\n".join(rows)
    )


def _claims(found: Result) -> list[tuple[str, str, str, bool]]:
    drain, best = found["seconds_to_drain"], found["drain_at_best"]
    stored = found["seconds_to_store_them"]
    return [
        (
            "the pool is at its maximum",
            f"{found['workers_at_peak']} workers {found['seconds_to_maximum']:.2f} s after the jobs were there; storing them, in one step that nobody sees before its end, took {stored:.2f} s",
            f"{found['most']} within 2 s",
            found["workers_at_peak"] >= found["most"] and found["seconds_to_maximum"] <= 2.0,
        ),
        (
            "it drains at the machine's speed",
            f"{drain:.1f} s, {found['jobs'] / drain:,.0f} jobs/s",
            f"{best:.1f} s if jobs cost nothing beside their hold; {found['steady_rate']:,.0f} jobs/s with all workers there from the start",
            drain <= 1.25 * found["jobs"] / found["steady_rate"] + 2.0,
        ),
        (
            "it returns to its minimum",
            f"{found['seconds_back_to_minimum']:.1f} s after the last job",
            "within 10 s",
            found["seconds_back_to_minimum"] <= 10.0,
        ),
        (
            "images never delay mail beyond its `max_wait`",
            f"the longest of all mails waited {found['mail_wait_max']:.2f} s",
            f"{found['mail_max_wait_accepted']:g} s",
            found["mail_wait_max"] <= found["mail_max_wait_accepted"],
        ),
        (
            "at night two workers remain",
            f"{found['workers_at_night']}",
            "2",
            found["workers_at_night"] == 2,
        ),
    ]


def _claim(claim: str, measured: str, needed: str, met: bool) -> str:
    return f"| {claim} | {measured} | {needed} | {'yes' if met else '**no**'} |"
