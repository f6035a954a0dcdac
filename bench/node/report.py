"""The tables: for each store, every peer with its figures, then the aims and whether they are met."""

import statistics

from aims import LEASE, aims
from environments import BULLMQ, PINNED
from figures import Figures, own
from peers import STORE_NAMES, STORES, Peer

HEAD = """# Benchmarks of the node

Written by `make bench-node`. Every system runs the same jobs on the same servers in the same run: Millpond
with its defaults, jobs in worker processes and every end settled durably; the peers with the best settings
that were found for them. Medians of all rounds, the range in brackets.

- **drain**: a filled queue of no-op jobs, from the first handler to the last; for Millpond, and for the
  peers on PostgreSQL, until the store itself shows that nothing is left.
- **pickup**: one job every 20 ms on an idle node, from the call that enqueues it to its handler.
- **CPU**: of all processes of the node for 10,000 jobs of the drain; **idle**: of a node with nothing to do.
- **worker killed**: SIGKILL to the process that runs a job, until the same job runs again. **Node killed**:
  to all processes of one of two nodes on this machine. **Machine lost**: the same where the other node can
  see nothing of it, so that only the lease tells. Peers have safe settings here: late acknowledgement and
  short timers; to them a killed node and a lost machine are the same.
- **store restarted**: the server, five times in ten seconds, every second time by force; **store cut off**:
  for a minute nothing comes through and no connection is closed. From its first answer until a node that runs
  jobs of 5 ms begins 90 % as many of them as before. All jobs ran in the end. Only Millpond is asked.
- **shared keys**: jobs of 20 ms, each with one of 2,000 keys, at most one of a key at a time, on 1 to 8 nodes
  of 8 workers; the longest pause is the longest time without the end of a job. Only Millpond is asked.
"""
DETAILS = "| system | drain: jobs/s | Millpond is | p50 ms | p99 ms | CPU s/10,000 | idle % of a core |"
KEYED = (
    "| nodes | workers of each | shared keys: jobs/s | of one node | longest pause s | deadlocks "
    "| two of a key at once |"
)
CRASHES = "| system | worker killed: p50, p99, worst | node killed: p50, worst | machine lost | settings |"


def markdown(figures: Figures) -> str:
    """The whole document."""
    lines = [HEAD]
    lines += [f"- {name}: {value}" for name, value in figures.setting.items()]
    for store in STORES:
        if store in figures.stores():
            lines += ["", f"## {STORE_NAMES[store]}", "", *_speed(store, figures)]
            lines += ["", *_crash(store, figures), "", *_keyed(store, figures), "", *_aims(store, figures)]
    lines += ["", "## Settings and versions", "", *_settings(figures)]
    if errors := figures.errors():
        lines += ["", "## Not measured", "", *(f"- {error}" for error in errors)]
    return "\n".join(lines)


def _speed(store: str, figures: Figures) -> list[str]:
    lines = [DETAILS, "| --- " * 7 + "|"]
    mine = figures.mine(store, "drain", "rate")
    for peer in (own(store), *_by_rate(figures.peers(store), figures)):
        rate = figures.median(peer, "drain", "rate")
        ratio = "" if not (mine and rate) or peer.name == "millpond" else f"{mine / rate:.2f} times as fast"
        cells = [
            f"**{peer.name}**" if peer.name == "millpond" else peer.name,
            _spread(figures.values(peer, "drain", "rate"), ",.0f"),
            ratio,
            *(_spread(figures.values(peer, "latency", part), ".2f") for part in ("p50", "p99")),
            _spread(figures.values(peer, "drain", "cpu"), ".2f"),
            _spread(figures.values(peer, "latency", "idle"), ".2f"),
        ]
        lines.append("| " + " | ".join(cells) + " |")
    return lines + _doubts(store, figures)


def _doubts(store: str, figures: Figures) -> list[str]:
    """What a reader should hold against the drains of a store."""
    lines = []
    for record in figures.records:
        if record["scenario"] != "drain" or "error" in record or not record["peer"].endswith(f"/{store}"):
            continue
        if record["others"] > 0.15:
            lines.append(f"- {record['peer']}: others used {record['others']:.2f} cores meanwhile.")
        if record["distinct"] != record["jobs"] or record["ran"] != record["jobs"]:
            ran = f"{record['ran']:,} runs of {record['distinct']:,} different jobs"
            lines.append(f"- {record['peer']}: {record['jobs']:,} jobs were enqueued, {ran} were seen.")
    return ["", *lines] if lines else []


def _crash(store: str, figures: Figures) -> list[str]:
    rows = []
    for peer in (own(store), *figures.peers(store)):
        worker = _killed(figures, peer, "worker_killed", ("p50", "p99", "max"))
        node = _killed(figures, peer, "node_killed", ("p50", "max"))
        lost = _killed(figures, peer, "machine_lost", ("p50", "max")) or (
            "" if peer.name == "millpond" else node
        )
        if worker or node or lost:
            cells = (peer.name, worker or "-", node or "-", lost or "-", peer.crash_note)
            rows.append(f"| {' | '.join(cells)} |")
    return [CRASHES, "| --- " * 5 + "|", *rows] if rows else []


def _keyed(store: str, figures: Figures) -> list[str]:
    rounds = figures.keyed(store)
    one = statistics.median([each["rate"] for each in rounds[1]]) if 1 in rounds else 0.0
    rows = []
    for nodes, found in rounds.items():
        rates = [each["rate"] for each in found]
        cells = (
            f"{nodes}",
            f"{found[0]['workers']}",
            _spread(rates, ",.0f"),
            f"{statistics.median(rates) / one:.2f} times" if one else "-",
            f"{max(each['pause'] for each in found):.2f}",
            f"{sum(each['deadlocks'] for each in found)}" if store == "postgres" else "-",
            f"{sum(each['overlaps'] for each in found)}",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return [KEYED, "| --- " * 7 + "|", *rows] if rows else []


def _killed(figures: Figures, peer: Peer, scenario: str, parts: tuple[str, ...]) -> str:
    kills = figures.median(peer, scenario, "kills")
    if kills is None:
        return ""
    if figures.median(peer, scenario, "lost"):
        return f"not within {figures.median(peer, scenario, 'cap'):g} s"
    shown = ", ".join(f"{figures.median(peer, scenario, part) or 0:.3g}" for part in parts)
    return f"{shown} s ({kills:,.0f} kills)"


def _aims(store: str, figures: Figures) -> list[str]:
    words = {True: "yes", False: "**no**", None: "not measured"}
    lines = ["| aim | needed | measured | met |", "| --- | --- | --- | --- |"]
    lines += [
        f"| {aim.what} | {aim.needed} | {aim.measured} | {words[aim.met]} |" for aim in aims(store, figures)
    ]
    return [*lines, "", f"A node's lease is {LEASE:g} s. In-process: handlers run where jobs are fetched."]


def _settings(figures: Figures) -> list[str]:
    lines = ["| system | store | versions | settings |", "| --- | --- | --- | --- |"]
    for store in figures.stores():
        for peer in (own(store), *figures.peers(store)):
            pins = PINNED | {"millpond": ("from source",), "bullmq": BULLMQ}
            versions = ", ".join(pins[peer.environment]).replace("==", " ").replace("@", " ")
            lines.append(f"| {peer.name} | {store} | {versions} | {peer.note} |")
    return lines


def _by_rate(peers: list[Peer], figures: Figures) -> list[Peer]:
    return sorted(peers, key=lambda peer: -(figures.median(peer, "drain", "rate") or 0.0))


def _spread(values: list[float], form: str) -> str:
    if not values:
        return "-"
    middle = format(statistics.median(values), form)
    if len(values) == 1:
        return middle
    return f"{middle} ({format(min(values), form)}-{format(max(values), form)})"
