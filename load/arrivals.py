"""When requests are due, whatever the server does: the open loop. Poisson arrivals from a seed.

A closed loop waits for its answer before it asks again, so a stall delays the very requests that would have shown it,
and percentiles look good. Here every request has its moment beforehand and is timed from it.
"""

import random


def due_times(rate: float, seconds: float, seed: int = 7) -> list[float]:
    """Seconds from the start at which requests are due: `rate` a second on average, for `seconds`. Seeds repeat."""
    draw, due, found = random.Random(seed), 0.0, []
    while (due := due + draw.expovariate(rate)) < seconds:
        found.append(due)
    return found
