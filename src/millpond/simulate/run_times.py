"""How long simulated jobs take: `exp:3s`, `lognormal:3s:10`, `pareto:3s:1.5`, `fixed:3s`.

The first number is the mean. Of a lognormal the second is the squared coefficient of variation, of a Pareto
the exponent: at 1.5 the variance is infinite, and one job in a thousand takes a hundred times the shortest.
"""

from __future__ import annotations

import math
import random
from array import array
from collections.abc import Callable
from typing import NamedTuple

from millpond.errors import OptionError
from millpond.units import seconds

KINDS = "exp:3s, lognormal:3s:10, pareto:3s:1.5 or fixed:3s"
LONGEST = 86_400.0  # no simulated job takes more than a day


class Service(NamedTuple):
    """A distribution of run times."""

    kind: str
    mean: float
    shape: float = 0.0

    def draw(self, count: int, chance: random.Random) -> array[float]:
        """So many run times."""
        one = self._one(chance)
        return array("d", (min(one(), LONGEST) for _ in range(count)))

    def _one(self, chance: random.Random) -> Callable[[], float]:
        if self.kind == "exp":
            return lambda: chance.expovariate(1.0 / self.mean)
        if self.kind == "lognormal":
            variance = math.log(1.0 + self.shape)
            middle, spread = math.log(self.mean) - variance / 2, math.sqrt(variance)
            return lambda: chance.lognormvariate(middle, spread)
        if self.kind == "pareto":
            least = self.mean * (self.shape - 1.0) / self.shape
            return lambda: least * chance.paretovariate(self.shape)
        return lambda: self.mean

    def __str__(self) -> str:
        """As it is written."""
        mean = f"{self.mean:g}s"
        return f"{self.kind}:{mean}" + (f":{self.shape:g}" if self.shape else "")


def parse(text: str) -> Service:
    """Read a distribution."""
    kind, *numbers = text.split(":")
    shapes = {"exp": None, "fixed": None, "lognormal": 10.0, "pareto": 1.5}
    if kind not in shapes or not 1 <= len(numbers) <= (1 if shapes[kind] is None else 2):
        raise OptionError(f"a service time must be such as {KINDS}, not {text!r:.80}")
    mean = seconds(numbers[0], name="service time")
    try:
        shape = float(numbers[1]) if len(numbers) > 1 else shapes[kind] or 0.0
    except ValueError:
        raise OptionError(f"{numbers[1]!r:.80} in {text!r:.80} is no number") from None
    if not 0 < mean <= LONGEST or not math.isfinite(shape):
        raise OptionError(f"the mean of a service time must be above 0 and at most a day, not {numbers[0]}")
    if (kind == "pareto" and shape <= 1.0) or (kind == "lognormal" and shape <= 0.0):
        raise OptionError(f"{text!r:.80}: a Pareto needs more than 1, a lognormal more than 0")
    return Service(kind, mean, shape)
