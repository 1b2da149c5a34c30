"""Times of ranks as machines make them: jitter, bursts of other programs, pauses on all ranks or one, a slow first step."""

import numpy as np


def healthy(rng: np.random.Generator) -> np.ndarray:
    """[steps, ranks] in seconds: ranks that are like each other, and what noise makes of them."""
    ranks, steps = int(rng.choice([2, 3, 4, 8])), int(rng.integers(12, 400))
    usual = float(rng.choice([0.003, 0.01, 0.05, 0.3]))
    seconds = usual * rng.lognormal(0, rng.choice([0.02, 0.1, 0.3]), (steps, ranks))
    rate = rng.choice([0, 0.01, 0.05])
    for rank in range(ranks):
        _bursts(rng, seconds[:, rank], usual, rate)
    if rng.random() < 0.5:  # a save, a page of logs: on all ranks at once
        seconds[:: int(rng.integers(5, 40))] += usual * rng.uniform(1, 10)
    if rng.random() < 0.5:  # the collector of garbage, on each rank by its own count
        period, pause = int(rng.integers(7, 40)), usual * rng.uniform(0.5, 3)
        for rank in range(ranks):
            seconds[int(rng.integers(0, 7)) :: period, rank] += pause
    seconds[0] *= rng.uniform(1, 50)
    return seconds


def _bursts(rng: np.random.Generator, own: np.ndarray, usual: float, rate: float) -> None:
    """Another program has the rank's core for some steps, or for some of these."""
    for at in np.flatnonzero(rng.random(len(own)) < rate):
        length, flickers = int(min(rng.geometric(1 / rng.choice([1, 5])), 25)), rng.choice([0.5, 1.0])
        hit = rng.random(length) < flickers
        own[at : at + length] += (usual * rng.uniform(0.5, 9) * hit)[: len(own[at : at + length])]


def slowed(rng: np.random.Generator, *, ranks: int, steps: int, times: float, share: float = 1.0, begin: int = 0):
    """([steps, ranks] in seconds, the rank): one rank at random is slow in a share of the steps from `begin` on."""
    seconds = 0.02 * rng.lognormal(0, 0.1, (steps, ranks))
    rank, struck = int(rng.integers(ranks)), rng.random(steps) < share
    struck[:begin] = False
    seconds[struck, rank] *= times
    return seconds, rank
