"""Mechanisms that are timelines: buckets that queue for the link, workers that prepare ahead, stale gradients, saves."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...theory.delay import mean_staleness, pushes_in_turn
from ...theory.input_model import expected_step, pipeline
from ...theory.overlap_model import MIB, Link, evenly, predict
from ...theory.panel import Axis, Chart, Slider, Span
from ..charts import to_sketch
from ..moving import Moving, Shown
from ..sketch import Sketch
from . import whole

LAYERS, LAYER_MIB, BACKWARD_MS = 8, 10, 80.0
LINK = Link(4, 50e-6, 2.2e9)


def _buckets(layers_a_bucket: int, until_ms: float = float("inf")) -> tuple[Chart, str]:
    gradients = evenly([LAYER_MIB * MIB] * LAYERS, forward_s=BACKWARD_MS / 2e3, backward_s=BACKWARD_MS / 1e3)
    found = predict(gradients, LINK, layers_a_bucket * LAYER_MIB * MIB)
    each = BACKWARD_MS / LAYERS
    spans = [Span(lane=0, begin=n * each, end=(n + 1) * each, kind="gradient of a layer", text=str(LAYERS - n))
             for n in range(LAYERS)]  # fmt: skip
    filled = 0.0
    for number, (ready, begin, end) in enumerate(found.spans, start=1):
        spans.append(Span(lane=1, begin=filled, end=ready * 1e3, kind="a bucket fills", text=str(number)))
        spans.append(Span(lane=2, begin=begin * 1e3, end=end * 1e3, kind="its all-reduce", text=str(number)))
        filled = ready * 1e3
    cut = tuple(
        Span(lane=s.lane, begin=s.begin, end=min(s.end, until_ms), kind=s.kind, text=s.text)
        for s in spans
        if s.begin < until_ms
    )
    travelled = sum(end * 1e3 <= until_ms for _, _, end in found.spans)
    said = (
        f"{found.buckets} buckets of {layers_a_bucket} layers each; the last all-reduce ends {found.exposed_s * 1e3:.0f} ms "
        f"after the backward pass. " + (f"At {until_ms:g} ms {travelled} have arrived." if until_ms < 1e9 else "")
    )
    chart = Chart(
        title="Gradients fill buckets, and a full bucket sets out",
        x=Axis(label="from the start of the backward pass", unit="ms", low=0, high=max(s.end for s in spans) * 1.03),
        y=Axis(label="", names=("backward", "buckets", "link")),
        spans=cut,
    )
    return chart, said.strip()


def _with_words(chart: Chart, said: str) -> Sketch:
    drawn = to_sketch(chart)
    return Sketch(drawn.width, drawn.height, drawn.shapes, f"{drawn.alt} {said}")


def buckets(layers_a_bucket: int = 2) -> Sketch:
    """Eight layers of 10 MiB, whose gradients go over a link while the backward pass goes on."""
    return _with_words(*_buckets(whole("layers_a_bucket", layers_a_bucket, 1, LAYERS)))


def buckets_steps(layers_a_bucket: int = 2) -> Moving:
    """The same, moment by moment."""
    whole("layers_a_bucket", layers_a_bucket, 1, LAYERS)

    def show(settings: Mapping[str, Any]) -> Shown:
        chart, said = _buckets(settings["layers_a_bucket"], settings["now_ms"])
        return Shown((_with_words(chart, said),), said)

    sliders = (
        Slider(name="now_ms", label="now", unit="ms", stops=tuple(float(each) for each in range(5, 185, 5)), value=40.0),
        Slider(name="layers_a_bucket", label="layers in a bucket", unit="", stops=tuple(range(1, LAYERS + 1)),
               value=layers_a_bucket),
    )  # fmt: skip
    source = "Simulated: 8 layers of 10 MiB, 80 ms of backward pass, 4 ranks, 50 µs a step of the ring, 2.2 GB/s."
    return Moving("Buckets fill and travel", sliders, show, source, still=buckets(layers_a_bucket))


def loader(workers: int = 2, prepare_ms: int = 40, compute_ms: int = 20) -> Sketch:
    """Batches on their way from workers to the device."""
    whole("workers", workers, 0, 4)
    whole("prepare_ms", prepare_ms, 1, 1000)
    whole("compute_ms", compute_ms, 1, 1000)
    made = pipeline(prepare_ms, compute_ms, workers, 6)
    lanes = ["main"] if workers == 0 else [f"worker {number}" for number in range(workers)]
    spans = []
    for number, each in enumerate(made, start=1):
        (begin, end), (start, stop), text = each.prepared, each.computed, str(number)
        spans.append(Span(lane=each.worker or 0, begin=begin, end=end, kind="prepares a batch", text=text))
        spans.append(Span(lane=len(lanes), begin=start, end=stop, kind="computes on it", text=text))
    step = expected_step(prepare_ms, compute_ms, workers)
    formula = "D + C" if workers == 0 else "max(D/w, C)"
    chart = Chart(
        title=f"{workers or 'No'} worker{'' if workers == 1 else 's'}: a step takes {formula} = {step:g} ms once it runs",
        x=Axis(label="time", unit="ms", low=0),
        y=Axis(label="", names=(*lanes, "device")),
        spans=tuple(spans),
    )
    return _with_words(chart, f"Preparing takes {prepare_ms} ms, computing {compute_ms} ms.")


def parameter_server(workers: int = 3) -> Sketch:
    """Workers at one pace: which version each gradient was computed on, and which it is applied to."""
    whole("workers", workers, 1, 4)
    made = pushes_in_turn(workers, 3 * workers)
    begun = [0.0] * workers
    spans = []
    for worker, pulled, version in made:
        spans.append(
            Span(lane=worker, begin=begun[worker], end=version + 1.0, kind="computes a gradient", text=f"v{pulled}")
        )
        spans.append(Span(lane=workers, begin=version, end=version + 1.0, kind="the server's version", text=f"v{version}"))
        begun[worker] = version + 1.0
    late = [version - pulled for _, pulled, version in made]
    mean = mean_staleness(workers, len(made))
    chart = Chart(
        title=f"Staleness of {workers} workers at one pace: {max(late)} versions",
        x=Axis(label="pushes", low=0, high=float(len(made))),
        y=Axis(label="", names=(*(f"worker {number}" for number in range(workers)), "server")),
        spans=tuple(spans),
    )
    said = (
        f"A worker pulls a version, computes on it, and pushes: by then the other {workers - 1} have pushed. Staleness is "
        f"W − 1 = {max(late)} once it runs, {mean:.2f} on average over these {len(made)} pushes."
    )
    return _with_words(chart, said)


def checkpoint(interval: int = 5, crash: int = 17, total: int = 24) -> Sketch:
    """Steps, saves, a crash, and what is done again."""
    whole("interval", interval, 1, 50)
    whole("total", total, 2, 60)
    whole("crash", crash, 1, total - 1)
    saved = crash // interval * interval
    again = crash - saved
    restart = 3.0
    spans = [Span(lane=0, begin=0, end=saved, kind="steps that last", text=f"0–{saved}")] if saved else []
    spans += [Span(lane=0, begin=saved, end=crash, kind="done twice", text=str(again))] if again else []
    spans += [Span(lane=1, begin=n - 0.25, end=n + 0.25, kind="save") for n in range(interval, crash + 1, interval)]
    begin = crash + restart
    spans += [Span(lane=2, begin=crash, end=begin, kind="restart")]
    spans += [Span(lane=2, begin=begin, end=begin + again, kind="done twice", text=str(again))] if again else []
    spans += [Span(lane=2, begin=begin + again, end=begin + total - saved, kind="steps that last", text=f"{crash}–{total}")]
    chart = Chart(
        title=f"Saved every {interval} steps, killed in step {crash}: {again} done again",
        x=Axis(label="time, in steps", low=0),
        y=Axis(label="", names=("attempt 0", "saves", "attempt 1")),
        spans=tuple(spans),
    )
    said = (
        f"The newest save holds {saved} steps. The second attempt begins there: {again} steps are done twice. On average "
        f"half an interval is lost, {interval / 2:g} steps."
    )
    return _with_words(chart, said)


DRAWINGS = {
    "buckets": buckets,
    "loader": loader,
    "parameter-server": parameter_server,
    "checkpoint": checkpoint,
}
STEPS = {"buckets": buckets_steps}
