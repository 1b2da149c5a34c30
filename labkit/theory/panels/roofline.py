"""Lab 02: what limits a matrix product, and what share of the peak a training run reaches."""

from __future__ import annotations

import numpy as np

from ...words import short
from ..ceilings import attainable, matmul_work, ridge, roofline_s
from ..flops import mfu
from ..panel import Axis, Chart, Curve, Drawn, Panel, Point, Slider, decades, powers_of_two
from ..scale import share_said, time_said

ELEMENT_BYTES = {"fp32": 4, "bf16 or fp16": 2}


def draw(
    rows: int, width: int, dtype: str, peak_tflops: float, gb_per_s: float, gflop_a_token: float, tokens_per_s: float
) -> Drawn:
    """The roof with the product [rows, width] × [width, width] on it, and MFU by tokens a second."""
    peak, bandwidth = peak_tflops * 1e12, gb_per_s * 1e9
    flops, moved = matmul_work(rows, width, width, ELEMENT_BYTES[dtype])
    seconds, at = roofline_s(flops, moved, peak, bandwidth), ridge(peak, bandwidth)
    used = mfu(tokens_per_s=tokens_per_s, flops_per_token=gflop_a_token * 1e9, peak_flops=peak)
    limit = "memory" if flops / moved < at else "arithmetic"
    beyond = " That cannot be: one of the three numbers is wrong." if used > 1 else ""
    said = (
        f"[{rows:,}, {width:,}] × [{width:,}, {width:,}] does {flops / moved:,.3g} operations a byte, and the ridge is at "
        f"{at:,.3g}: {limit} is the limit. It takes {time_said(seconds)} at the least. {short(tokens_per_s)} tokens/s of "
        f"{gflop_a_token:.3g} GFLOP each are {share_said(used)} MFU.{beyond}"
    )
    numbers = {"intensity": flops / moved, "ridge": at, "least_s": seconds, "mfu": used}
    charts = (_roof(flops / moved, flops / seconds, peak, bandwidth), _mfu(tokens_per_s, gflop_a_token * 1e9, peak, used))
    return Drawn(charts=charts, said=said, numbers=numbers)


def _roof(intensity: float, reached: float, peak: float, bandwidth: float) -> Chart:
    x = np.geomspace(0.1, 1e4, 61)
    at = ridge(peak, bandwidth)
    x = np.sort(np.append(x, at))
    return Chart(
        title="The roof: memory, then arithmetic",
        x=Axis(label="operations a byte", log=True, low=0.1, high=1e4),
        y=Axis(label="rate", unit="FLOP/s", log=True),
        curves=(Curve(label="the most that a kernel can reach", x=tuple(x), y=tuple(attainable(x, peak, bandwidth))),),
        points=(Point(label="your product, at its best", x=intensity, y=reached),),
    )


def _mfu(tokens_per_s: float, flops_per_token: float, peak: float, used: float) -> Chart:
    full = peak / flops_per_token
    x = tuple(np.linspace(0, max(full, tokens_per_s) * 1.05, 21))
    return Chart(
        title="MFU by tokens a second",
        x=Axis(label="tokens a second", low=0),
        y=Axis(label="MFU", percent=True, low=0, high=max(1.05, used * 1.05)),
        curves=(
            Curve(label="tokens/s × FLOPs a token / peak", x=x, y=tuple(each / full for each in x)),
            Curve(label="all of the peak", x=(0.0, x[-1]), y=(1.0, 1.0), minor=True),
        ),
        points=(Point(label="your run", x=tokens_per_s, y=used),),
    )


PANEL = Panel(
    title="What limits a product, and what is your MFU?",
    sliders=(
        Slider(name="rows", label="rows of the input (tokens at once)", unit="", stops=powers_of_two(1, 16384), value=16),
        Slider(name="width", label="width of the layer", unit="", stops=powers_of_two(64, 16384), value=4096),
        Slider(name="dtype", label="number format", unit="", stops=tuple(ELEMENT_BYTES), value="bf16 or fp16"),
        Slider(name="peak_tflops", label="peak of the device", unit="TFLOP/s", stops=decades(0.01, 5000), value=1000.0),
        Slider(name="gb_per_s", label="memory bandwidth", unit="GB/s", stops=decades(1, 10000), value=2000.0),
        Slider(name="gflop_a_token", label="work of one token, forward and backward", unit="GFLOP",
               stops=decades(0.001, 5000), value=50.0),
        Slider(name="tokens_per_s", label="tokens a second", unit="tokens/s", stops=decades(10, 1e6), value=10000.0),
    ),
    draw=draw,
    source="time ≥ max(F/peak, B/bandwidth): Williams, Waterman, Patterson, 2009; MFU: Chowdhery et al., 2022, appendix B",
)  # fmt: skip
