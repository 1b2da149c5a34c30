"""Lab 06: what a rank keeps at each stage of ZeRO, activations included."""

from __future__ import annotations

from dataclasses import replace

from ...words import plural
from ..activations import RECOMPUTE, Recompute, activation_bytes, usual_proportions
from ..panel import Axis, Bars, Chart, Curve, Drawn, Panel, Point, Slider, decades, powers_of_two
from ..scale import bytes_said, with_prefix
from ..zero import RECIPES, STAGE_NAMES, STAGES, Offloaded, State, offloaded, state, traffic

NAMES = tuple(STAGE_NAMES[stage] for stage in STAGES)
TRAINING = tuple(name for name in RECIPES if name != "weights only")
UNITS = ((1e9, "GB"), (1e6, "MB"), (1e3, "kB"), (1.0, "bytes"))
ON_THE_DEVICE, IN_HOST_MEMORY = "on the device", "in host memory"
COUNTS = ((1e9, "10⁹"), (1e6, "10⁶"), (1e3, "10³"), (1.0, ""))


def draw(
    billions: float,
    ranks: int,
    recipe: str,
    memory_gb: float,
    batch: int,
    sequence: int,
    recompute: Recompute,
    optimizer: str = ON_THE_DEVICE,
) -> Drawn:
    """Bytes of one rank by stage, stacked, under the memory of a device; and what a rank sends."""
    params, on_host = billions * 1e9, optimizer == IN_HOST_MEMORY
    kept = [state(params, ranks, stage, recipe) for stage in STAGES]
    moved = [offloaded(params, ranks, stage, recipe) for stage in STAGES]
    if on_host:
        kept = [replace(each, optimizer_state=0.0) for each in kept]
    shape = usual_proportions(params)
    passing = activation_bytes(shape, sequence=sequence, batch=batch, recompute=recompute) if batch else 0.0
    totals = [each.total + passing for each in kept]
    fitting = [NAMES[stage] for stage in STAGES if totals[stage] <= memory_gb * 1e9]
    of_each = ", ".join(f"{name} {bytes_said(total)}" for name, total in zip(NAMES, totals, strict=True))
    said = (
        f"{with_prefix(params, '').strip()} parameters on {plural(ranks, 'rank')}: a rank keeps {of_each}, of which "
        f"{bytes_said(passing)} are activations, which no stage divides. In {bytes_said(memory_gb * 1e9)} "
        + (f"{fitting[0]} is the first that fits." if fitting else "none of them fits.")
    )
    if on_host:
        said += " " + _host_said(moved)
    numbers = {f"stage_{stage}_bytes": totals[stage] for stage in STAGES} | {"activation_bytes": passing}
    numbers |= {f"stage_{stage}_moved_bytes": moved[stage].moved_bytes if on_host else 0.0 for stage in STAGES}
    size, unit = next((size, unit) for size, unit in UNITS if max(totals) >= size or size == 1.0)
    charts = (_kept(kept, passing, memory_gb * 1e9, size, unit), _sent(params, ranks))
    return Drawn(charts=charts, said=said, numbers=numbers)


def _host_said(moved: list[Offloaded]) -> str:
    whole, share = moved[0], moved[1]
    return (
        f"The optimizer's state lies in host memory: {bytes_said(share.host_bytes)} a rank, and with DDP "
        f"{bytes_said(whole.host_bytes)}. In each step a rank moves {bytes_said(share.moved_bytes)} over its bus (with DDP "
        f"{bytes_said(whole.moved_bytes)}), gradients down and weights up, and the host's cores do the update."
    )


def _kept(kept: list[State], passing: float, memory: float, size: float, unit: str) -> Chart:
    layers = (
        ("parameters", [each.parameters for each in kept]),
        ("gradients", [each.gradients for each in kept]),
        ("optimizer state", [each.optimizer_state for each in kept]),
        ("activations", [passing] * len(kept)),
    )
    return Chart(
        title="What one rank keeps",
        x=Axis(label="stage", names=NAMES),
        y=Axis(label="memory", unit=unit, low=0),
        bars=tuple(Bars(label=name, heights=tuple(each / size for each in values)) for name, values in layers),
        curves=(Curve(label="memory of a device", x=(-0.5, 3.5), y=(memory / size,) * 2, minor=True),),
    )


def _sent(params: float, ranks: int) -> Chart:
    sent = [traffic(params, ranks, stage) for stage in STAGES]
    size, unit = next((each for each in COUNTS if max(sent) >= each[0]), COUNTS[-1])
    return Chart(
        title="What one rank sends in a step",
        x=Axis(label="stage", names=NAMES),
        y=Axis(label="elements sent", unit=unit, low=0),
        bars=(Bars(label="gradients and weights", heights=tuple(each / size for each in sent)),),
    )


def in_the_chart(num_bytes: float, panel: Panel, stage: int, label: str) -> Point:
    """A measured number of bytes at its stage, in the unit that the chart has at the panel's settings."""
    unit = panel.shown().charts[0].y.unit
    size = next(size for size, name in UNITS if name == unit)
    return Point(label=label, x=float(stage), y=num_bytes / size, provenance="measured")


PANEL = Panel(
    title="What does a rank keep at each stage?",
    sliders=(
        Slider(name="billions", label="parameters (Ψ)", unit="billion", stops=decades(0.1, 1000, (1, 2, 3, 5, 7)),
               value=7.0),
        Slider(name="ranks", label="ranks (W)", unit="", stops=powers_of_two(1, 4096), value=8),
        Slider(name="recipe", label="what training keeps", unit="", stops=TRAINING, value="mixed Adam"),
        Slider(name="memory_gb", label="memory of a device", unit="GB", stops=(8, 12, 16, 24, 40, 48, 80, 96, 141, 192, 288),
               value=80),
        Slider(name="batch", label="sequences in a micro-batch", unit="", stops=(0, 1, 2, 4, 8, 16, 32), value=1),
        Slider(name="sequence", label="tokens in a sequence", unit="", stops=powers_of_two(128, 131072), value=4096),
        Slider(name="recompute", label="computed again", unit="", stops=RECOMPUTE, value="attention"),
        Slider(name="optimizer", label="optimizer state", unit="", stops=(ON_THE_DEVICE, IN_HOST_MEMORY),
               value=ON_THE_DEVICE),
    ),
    draw=draw,
    source="state and traffic: arXiv:1910.02054; activations: arXiv:2205.05198, a model as deep as wide/128, in 16 bits; "
    "in host memory: arXiv:2101.06840",
)  # fmt: skip
