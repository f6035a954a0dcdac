"""Who is measured: each peer with its best settings for speed, and with safe ones for the crash scenario.

The settings were found by pilots over processes, threads, concurrency, prefetch and batch. Only one node of
each runs on the machine; where a node is several processes, they are several commands.
"""

from typing import NamedTuple

Command = tuple[str, ...]


class Peer(NamedTuple):
    """One system on one store. Words in braces are filled in when it is started."""

    name: str
    store: str
    environment: str
    best: tuple[Command, ...]
    safe: tuple[Command, ...]  # empty: the crash scenario says nothing new about it
    jobs: int  # of a drain: a few seconds of work
    note: str
    crash_note: str = ""
    outside: bool = False  # do jobs run outside the process that fetches them?
    bulk: bool = False
    left: str = ""  # SQL that counts unfinished jobs

    @property
    def key(self) -> str:
        return f"{self.name}/{self.store}"


RUN = (("{bin}/millpond", "run", "millpond_jobs:app", "--log-level", "warning", "--no-health"),)
APART = (("{bin}/python", "apart.py", *RUN[0][1:]),)
CELERY = (
    *("{bin}/celery", "-A", "celery_jobs", "worker", "-c", "2", "--loglevel", "WARNING"),
    *("--without-gossip", "--without-mingle", "--without-heartbeat"),
)
RQ = ("-q", "-u", "{redis}", "bench")
RQ_SAFE = ("--maintenance-interval", "5", "--job-monitoring-interval", "5", "--worker-ttl", "25")
SIMPLE = ("-w", "rq.worker.SimpleWorker")
HUEY = ("{bin}/huey_consumer", "huey_jobs.huey", "-q", "-n")
TASKIQ = (
    *("{bin}/taskiq", "worker", "taskiq_jobs:broker", "--workers", "2"),
    *("--log-level", "WARNING", "--no-parse", "--max-prefetch", "100"),
)
PROCRASTINATE = ("{bin}/procrastinate", "-a", "procrastinate_jobs.app", "worker")
PGQUEUER = ("{bin}/python", "pgqueuer_jobs.py", "worker")
ARQ = ("{bin}/arq", "arq_jobs.WorkerSettings", "--custom-log-dict", "arq_jobs.quiet")
BULLMQ = ("node", "bullmq_jobs.js", "worker")


def _millpond(store: str) -> Peer:
    note = "defaults: worker processes up to the cores, settled durably, finished jobs kept"
    return Peer("millpond", store, "millpond", RUN, RUN, 40_000, note, "defaults", True, True)


PEERS: tuple[Peer, ...] = (
    _millpond("redis"),
    _millpond("postgres"),
    _millpond("sqlite"),
    Peer(
        "taskiq-stream",
        "redis",
        "taskiq",
        (TASKIQ,),
        (TASKIQ,),
        20_000,
        "2 processes, uvloop, XREADGROUP 200, acknowledged after the run",
        "idle_timeout 15 s; an idle queue never claims what is pending",
    ),
    Peer(
        "dramatiq",
        "redis",
        "dramatiq",
        (("{bin}/dramatiq", "dramatiq_jobs", "-p", "2", "-t", "8"),),
        (("{bin}/dramatiq", "dramatiq_jobs", "-p", "2", "-t", "8"),),
        20_000,
        "2 processes of 8 threads, prefetch 256, only Retries, acknowledged after the run",
        "heartbeat_timeout 10 s, maintenance at every command",
    ),
    Peer(
        "huey",
        "redis",
        "huey",
        ((*HUEY, "-k", "process", "-w", "3"),),
        ((*HUEY, "-k", "process", "-w", "2"),),
        20_000,
        "3 processes, no results; pops before the run",
        "no setting brings a popped job back",
    ),
    Peer(
        "saq",
        "redis",
        "saq",
        (("{bin}/saq", "saq_jobs.settings", "--workers", "2"),),
        (("{bin}/saq", "saq_jobs.settings"),),
        10_000,
        "2 processes, concurrency 50, uvloop, no results",
        "retries 3, heartbeat 10 s, sweep 5 s",
    ),
    Peer(
        "arq",
        "redis",
        "arq",
        (ARQ,),
        (ARQ,),
        10_000,
        "max_jobs 200, poll 5 ms, uvloop, no results",
        "job_timeout 20 s",
    ),
    Peer(
        "celery",
        "redis",
        "celery",
        (CELERY,),
        (CELERY,),
        8_000,
        "prefork 2, prefetch 128, no results, acks_late",
        "acks_late, reject_on_worker_lost, visibility_timeout 30 s",
        outside=True,
    ),
    Peer(
        "rq",
        "redis",
        "rq",
        (("{bin}/rq", "worker-pool", "-n", "2", *RQ),),
        (("{bin}/rq", "worker", *RQ_SAFE, *RQ),),
        1_000,
        "worker-pool 2, a fork for each job, no results",
        "Retry(3), maintenance and monitoring 5 s, worker_ttl 25 s",
        outside=True,
        bulk=True,
    ),
    Peer(
        "rq-simple",
        "redis",
        "rq",
        (("{bin}/rq", "worker-pool", "-n", "2", *SIMPLE, *RQ),),
        (),
        4_000,
        "worker-pool 2, SimpleWorker: jobs in the fetching process",
        bulk=True,
    ),
    Peer(
        "bullmq",
        "redis",
        "bullmq",
        (BULLMQ,),
        (BULLMQ,),
        40_000,
        "Node.js, 1 process, concurrency 100, removeOnComplete",
        "lockDuration 10 s, stalledInterval 5 s",
        bulk=True,
    ),
    Peer(
        "pgqueuer",
        "postgres",
        "pgqueuer",
        (PGQUEUER,),
        (PGQUEUER,),
        40_000,
        "1 process, batches of 200, uvloop, durable tables",
        "heartbeat 10 s, dequeue timeout 2 s",
        bulk=True,
        left="SELECT count(*) FROM pgqueuer",
    ),
    Peer(
        "procrastinate",
        "postgres",
        "procrastinate",
        ((*PROCRASTINATE, "-c", "10", "--delete-jobs", "always"),) * 2,
        (PROCRASTINATE,),
        3_000,
        "2 processes of concurrency 10, finished jobs deleted",
        "heartbeat 2 s, stalled after 10 s, retried every 5 s",
        bulk=True,
        left="SELECT count(*) FROM procrastinate_jobs WHERE status IN ('todo', 'doing')",
    ),
    Peer(
        "huey",
        "sqlite",
        "huey",
        ((*HUEY, "-k", "thread", "-w", "1", "-d", "0.005", "-m", "0.05"),),
        ((*HUEY, "-k", "process", "-w", "2", "-d", "0.005", "-m", "0.05"),),
        20_000,
        "1 thread, WAL, synchronous FULL, polls every 5 to 50 ms; pops before the run",
        "no setting brings a popped job back",
    ),
)
STORES = ("redis", "postgres", "sqlite")
STORE_NAMES = {
    "redis": "Redis, AOF everysec",
    "postgres": "PostgreSQL, synchronous_commit on",
    "sqlite": "SQLite, synchronous FULL",
}
