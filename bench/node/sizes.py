"""How much is measured: for publication, and for a look."""

from typing import NamedTuple


class Sizes(NamedTuple):
    """The size of each scenario."""

    share: float  # of a peer's jobs in a drain
    paced: int  # jobs of the latency scenario
    idle: float  # seconds that an idle node is watched
    kills: int  # of Millpond's workers
    node_kills: int  # of Millpond's nodes
    peer_kills: int  # of each peer, workers and nodes
    cap: float  # seconds after which a peer has not brought a job back
    restarts: int  # of the store, two seconds apart
    silence: float  # seconds in which the store cannot be reached
    nodes: tuple[int, ...]  # of the keyed scenario, one measurement each
    keys: int  # among which its jobs are spread
    keyed: float  # seconds of each of its measurements
    workers: int  # of each of its nodes: the jobs sleep, so there may be more than cores


FULL = Sizes(1.0, 500, 10.0, 1000, 10, 3, 120.0, 5, 60.0, (1, 2, 4, 8), 2000, 20.0, 8)
QUICK = Sizes(0.05, 100, 3.0, 20, 1, 1, 30.0, 2, 5.0, (1, 2), 2000, 5.0, 8)
INTERVAL = 0.02  # seconds between jobs of the latency scenario
START = 60.0  # seconds that a node may take to begin its first job
STALLED = 15.0  # seconds without a job after which a drain is over
