"""How much work each scenario does: the published sizes, and smaller ones for a quick look."""

from typing import NamedTuple


class Sizes(NamedTuple):
    submit: int = 20_000
    gather: int = 50_000
    round_trips: int = 2_000
    map: int = 20_000
    map_large: int = 1_000_000
    cpu: int = 2_000
    arrays: int = 100
    crash: int = 1_000
    hang: int = 100
    recycle: int = 1_000
    replacements: int = 20
    starts: int = 5
    repeats: int = 3


FULL = Sizes()
QUICK = Sizes(
    submit=5_000,
    gather=10_000,
    round_trips=500,
    map_large=200_000,
    cpu=500,
    arrays=20,
    crash=250,
    hang=40,
    recycle=300,
    replacements=5,
    starts=2,
    repeats=1,
)
