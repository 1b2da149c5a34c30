"""Lab 00: how long a ring all-reduce takes, by its bytes and by its ranks."""

from __future__ import annotations

import numpy as np

from ...words import plural
from ..ceilings import all_reduce_s, crossover_bytes
from ..panel import Axis, Chart, Curve, Drawn, Panel, Point, Slider, decades, powers_of_two
from ..scale import bytes_said, time_said

RANKS = powers_of_two(2, 1024)


def draw(num_bytes: float, ranks: int, alpha_us: float, gb_per_s: float) -> Drawn:
    """The time by message size, and the time of this message by ranks."""
    alpha_s, rate = alpha_us * 1e-6, gb_per_s * 1e9
    whole, latency = all_reduce_s(num_bytes, ranks, alpha_s, rate), all_reduce_s(0, ranks, alpha_s, rate)
    equal = crossover_bytes(ranks, alpha_s, rate)
    said = (
        f"An all-reduce of {bytes_said(num_bytes)} on {plural(ranks, 'rank')} takes {time_said(whole)}: "
        f"{time_said(latency)} for its {2 * (ranks - 1):,} steps and {time_said(whole - latency)} for its bytes. "
        f"Both cost the same at {bytes_said(equal)}."
    )
    numbers = {"time_s": whole, "latency_s": latency, "bytes_s": whole - latency, "crossover_bytes": equal}
    return Drawn(
        charts=(
            _by_size(num_bytes, ranks, alpha_s, rate, (whole, latency)),
            _by_ranks(num_bytes, ranks, alpha_s, rate, whole),
        ),
        said=said,
        numbers=numbers,
    )


def _by_size(num_bytes: float, ranks: int, alpha_s: float, rate: float, times: tuple[float, float]) -> Chart:
    sizes = np.geomspace(1e3, 1e10, 71)
    whole = [all_reduce_s(size, ranks, alpha_s, rate) for size in sizes]
    bytes_alone = [all_reduce_s(size, ranks, 0.0, rate) for size in sizes]
    x = tuple(sizes)
    return Chart(
        title="By size of the message",
        x=Axis(label="message", unit="bytes", log=True, low=1e3, high=1e10),
        y=Axis(label="time", unit="s", log=True),
        curves=(
            Curve(label="all-reduce", x=x, y=tuple(whole)),
            Curve(label="its bytes alone", x=x, y=tuple(bytes_alone), minor=True),
            Curve(label="its latency alone", x=x, y=(times[1],) * len(x), minor=True),
        ),
        points=(Point(label="your message", x=num_bytes, y=times[0]),),
    )


def _by_ranks(num_bytes: float, ranks: int, alpha_s: float, rate: float, whole: float) -> Chart:
    x = tuple(float(count) for count in RANKS)
    return Chart(
        title="The same message, by ranks",
        x=Axis(label="ranks (W)", log=True, low=2, high=1024),
        y=Axis(label="time", unit="s", log=True),
        curves=(
            Curve(label="all-reduce", x=x, y=tuple(all_reduce_s(num_bytes, int(count), alpha_s, rate) for count in x)),
            Curve(label="2·n/β, the limit of the bytes", x=x, y=(2 * num_bytes / rate,) * len(x), minor=True),
        ),
        points=(Point(label="your ranks", x=float(ranks), y=whole),),
    )


PANEL = Panel(
    title="How long does a ring all-reduce take?",
    sliders=(
        Slider(name="num_bytes", label="message (n)", unit="bytes", stops=decades(1e3, 1e10), value=1e8),
        Slider(name="ranks", label="ranks (W)", unit="", stops=RANKS, value=8),
        Slider(name="alpha_us", label="latency of a step (α)", unit="µs", stops=decades(1, 1e4), value=20.0),
        Slider(name="gb_per_s", label="bandwidth (β)", unit="GB/s", stops=decades(0.01, 500), value=10.0),
    ),
    draw=draw,
    source="T = 2(W−1)·α + 2(W−1)/W · n/β; Thakur, Rabenseifner, Gropp, 2005",
)
