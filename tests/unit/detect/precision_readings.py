"""Records about precision made of plain numbers: what the optimizer took and changed, by step."""

from labkit.record.schema import Event, RankLog, Record, Run

from ..builders import head, record_of, step

ELEMENTS = 1000


def update(*, zeros=200, lost=0, unchanged=None, nonfinite=0, weights_nonfinite=0, **more) -> dict:
    """The counts of a step in which the optimizer took one."""
    return {
        "updates": 1,
        "gradient_elements": ELEMENTS,
        "gradient_zeros": zeros,
        "gradient_nonfinite": nonfinite,
        "updates_lost": lost,
        "weights_unchanged": zeros + lost if unchanged is None else unchanged,
        "weights_nonfinite": weights_nonfinite,
        **more,
    }


def made_of(steps: list[dict], events=(), arrays=None, role="variant", **facts) -> Run:
    """A run of one rank; of each step its counts, with `loss`, `norm`, `scale` as scalars and `batch` as its sample."""
    written = []
    for number, counts in enumerate(steps):
        counts = dict(counts)
        names = {"loss": "loss_local", "norm": "grad_norm", "scale": "scale"}
        scalars = {names[key]: counts.pop(key) for key in names if key in counts}
        batch = counts.pop("batch", None)
        digests = {} if batch is None else {"train": [batch]}
        written.append(step(number, scalars={"batch_samples": 4, **scalars}, counts=counts, digests=digests))
    return Run(role, (RankLog(head(**facts), tuple(written), tuple(events)),), 1.0, arrays=arrays or {})


def beside_fp32(run: Run, reference: Run | None = None) -> Record:
    return record_of(run, **({} if reference is None else {"reference": reference}))


def timed(own_ms, fp32_ms) -> list[Event]:
    """The events of repeats, ten steps each."""
    return [
        Event("timed", 0, 0, {"loop": loop, "repeat": repeat, "steps": 10, "elapsed_ns": int(ms * 1e7)})
        for repeat, pair in enumerate(zip(own_ms, fp32_ms, strict=True))
        for loop, ms in zip(("variant", "fp32"), pair, strict=True)
    ]


def memory(weights: int) -> Event:
    kept = {"parameters": weights, "gradients": weights, "optimizer_state": 0}
    return Event("memory", 0, 0, {"instant": "first_update", **kept})
