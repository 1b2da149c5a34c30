"""Two calculators that stand where other labs have a panel: a kernel under the roof, an all-reduce along the line.

What they say is simulated: a model, with ceilings that were measured. Each can be asked without a browser (`answer`).
"""

from __future__ import annotations

from typing import Any

import ipywidgets as widgets

from ..errors import UnknownName, UsageError
from ..record.baseline import Baseline
from ..theory.ceilings import all_reduce_s, crossover_bytes, matmul_work, ridge, roofline_s
from ..words import plural
from .cards import SMALL, box, escape

ELEMENT_BYTES = {"fp32": 4, "tf32": 4, "bf16": 2, "fp16": 2}
WIDE = {"description_width": "9em"}


class Calculator:
    """Controls, and an answer that follows them."""

    def __init__(self, baseline: Baseline, controls: dict[str, Any], given: dict[str, Any]) -> None:
        self.baseline, self._controls = baseline, controls
        self._shown: Any = None  # the handle of the answer where it is displayed, once it is
        for name, value in given.items():
            if name not in controls:
                raise UnknownName("control of the calculator", name, controls)
            controls[name].value = value
        for control in controls.values():
            control.observe(lambda _change: self._show(), "value")
        self.widget = widgets.HBox(list(controls.values()), layout=widgets.Layout(flex_flow="row wrap"))

    def settings(self) -> dict[str, Any]:
        """What the controls say now."""
        return {name: control.value for name, control in self._controls.items()}

    def answer(self) -> str:
        """The prediction for the present settings, in a sentence."""
        raise NotImplementedError

    def _show(self) -> None:
        if self._shown is not None:
            self._shown.update(self._bundle(), raw=True)

    def _bundle(self) -> dict[str, str]:
        return {"text/html": self._repr_html_(), "text/plain": repr(self)}

    def __repr__(self) -> str:
        return f"{self.answer()} (simulated; ceilings {self.baseline.label()})"

    def _repr_html_(self) -> str:
        source = f"simulated: a model, with ceilings {self.baseline.label()}"
        return box(f"{escape(self.answer())}<div style='{SMALL}'>{escape(source)}</div>")

    def _ipython_display_(self) -> None:
        """The answer as text, which stays without a kernel and follows the controls under it, which do not stay."""
        from IPython.display import display

        self._shown = display(self._bundle(), raw=True, display_id=True)
        bundle: Any = self.widget._repr_mimebundle_()
        data = dict(bundle[0] if isinstance(bundle, tuple) else bundle)
        display({**data, "text/plain": "Controls of the calculator: they need a running kernel."}, raw=True)


class RooflineCalculator(Calculator):
    """How long a product [M,K] × [K,N] takes at the least here, and what limits it.

    Args:
        baseline: a machine's ceilings.
        given: initial values of m, n, k, batch, dtype.
    """

    def __init__(self, baseline: Baseline, **given: Any) -> None:
        def entry(name: str, value: int) -> Any:
            return widgets.BoundedIntText(value=value, min=1, max=10**6, description=name, style=WIDE)

        controls = {"m": entry("M", 16), "n": entry("N", 4096), "k": entry("K", 4096), "batch": entry("batch", 1)}
        controls["dtype"] = widgets.Dropdown(options=list(baseline.matmul_flops_per_s), description="dtype", style=WIDE)
        super().__init__(baseline, controls, given)

    def answer(self) -> str:
        s, baseline = self.settings(), self.baseline
        flops, moved = matmul_work(s["m"], s["n"], s["k"], ELEMENT_BYTES[s["dtype"]], s["batch"])
        peak, bandwidth = baseline.matmul_flops_per_s[s["dtype"]], baseline.copy_bytes_per_s
        seconds, at = roofline_s(flops, moved, peak, bandwidth), ridge(peak, bandwidth)
        limit = "memory" if flops / moved < at else "arithmetic"
        return (
            f"{flops / 1e9:,.4g} GFLOP over {moved / 1e6:,.4g} MB: {flops / moved:,.3g} operations a byte, and the ridge of "
            f"{s['dtype']} is at {at:,.3g}. So {limit} is the limit: {_time(seconds)} at the least, "
            f"{flops / seconds / peak:.1%} of what {s['dtype']} products reach here."
        )


class LinkCalculator(Calculator):
    """How long a ring all-reduce takes by α and β, on more ranks than were measured too.

    Args:
        baseline: a machine's ceilings, with a link.
        given: initial values of megabytes and ranks.

    Raises:
        UsageError: a baseline of one rank, which has no link.
    """

    def __init__(self, baseline: Baseline, **given: Any) -> None:
        if baseline.link_alpha_s is None or baseline.link_bytes_per_s is None:
            raise UsageError("this baseline has no link: it was measured on one rank; run the survey on 2 or more")
        controls: dict[str, Any] = {
            "megabytes": widgets.BoundedFloatText(value=100.0, min=1e-6, max=1e9, description="MB", style=WIDE),
            "ranks": widgets.BoundedIntText(value=8, min=2, max=65536, description="ranks", style=WIDE),
        }
        super().__init__(baseline, controls, given)

    def answer(self) -> str:
        s, alpha_s, rate = self.settings(), self.baseline.link_alpha_s, self.baseline.link_bytes_per_s
        assert alpha_s is not None and rate is not None
        num_bytes, ranks = s["megabytes"] * 1e6, s["ranks"]
        seconds = all_reduce_s(num_bytes, ranks, alpha_s, rate)
        latency = all_reduce_s(0, ranks, alpha_s, rate)
        return (
            f"An all-reduce of {s['megabytes']:,.4g} MB on {plural(ranks, 'rank')}: {_time(seconds)}, of which "
            f"{_time(latency)} is latency ({latency / seconds:.0%}) and {_time(seconds - latency)} bytes. Both cost the "
            f"same at {crossover_bytes(ranks, alpha_s, rate) / 1e6:,.3g} MB."
        )


def _time(seconds: float) -> str:
    for unit, factor in (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6)):
        if seconds >= factor:
            return f"{seconds / factor:,.3g} {unit}"
    return f"{seconds * 1e9:,.3g} ns"
