"""`labkit bench`: the survey as one question, answered from the kept baseline where that fits; and what runs here at all."""

from __future__ import annotations

from . import labs
from .detect.verdict import Verdicts
from .errors import UsageError
from .facade import lab
from .labs.spec import LabSpec
from .ranks.backend import choose, usable_cores, visible_gpus
from .ranks.join import outer_place
from .record.baseline import Baseline, NoBaseline, read_baseline
from .request import OnProgress
from .results import Bench, LabHere, LabsHere
from .watch.machine import device_name, processor_name, system_name
from .words import plural

SURVEY = "start-here"


def bench(
    *, refresh: bool = False, ranks: int | None = None, device: str | None = None, on_progress: OnProgress | None = None
) -> Bench | None:
    """Say what this machine can do: from the kept baseline if it fits, else by the survey, which is then kept.

    Under torchrun it always measures, so that all ranks do the same; then the ranks but 0 get None.

    Args:
        refresh: measure whatever is kept.
        ranks: of the link and of the launch; the survey's own number if None.
        device: "cpu" or "cuda"; chosen from the machine if None.
        on_progress: as for `Lab.run`.

    Raises:
        RecordError: the kept baseline is damaged; it is replaced only on `refresh`.
        UsageError: a wrong number of ranks or device.
    """
    joined = outer_place() is not None
    reason = "asked for" if refresh else "among the ranks of torchrun the machine is measured each time"
    if not refresh and not joined:
        kept, reason = _kept(ranks, device)
        if kept is not None:
            return Bench(kept, Verdicts(()), reason, measured_now=False)
    survey = lab(SURVEY)
    record = survey.run(ranks=ranks, device=device, on_progress=on_progress)
    if record is None:
        return None
    assert record.baseline is not None
    return Bench(record.baseline, survey.judge(record), reason, measured_now=True)


def _kept(ranks: int | None, device: str | None) -> tuple[Baseline | None, str]:
    """The kept baseline if it answers the question, and why it does or does not."""
    kind = choose(1, visible_gpus(), device).device
    try:
        kept = read_baseline(kind)
    except NoBaseline:
        return None, "no baseline was kept yet"
    import torch

    misfits = kept.misfits(
        device=device_name(kind), system=system_name(), torch=str(torch.__version__), cores=usable_cores()
    )
    if ranks is not None and ranks != kept.world_size:
        misfits.append(f"it is of {plural(kept.world_size, 'rank')}, and {ranks} were asked for")
    if misfits:
        return None, "the kept one does not fit: " + "; ".join(misfits)
    return kept, f"kept, {_age(kept.age_days())} old; --refresh measures again"


def _age(days: float) -> str:
    if days < 1 / 12:
        return f"{max(1, round(days * 24 * 60))} min"
    return f"{days * 24:.0f} hours" if days < 2 else f"{days:.0f} days"


def labs_here(cores: int | None = None, num_gpus: int | None = None) -> LabsHere:
    """Say which labs are measured here, which need a GPU, and what is simulated.

    Args:
        cores, num_gpus: of another machine, to ask about that; this one's if None.

    Raises:
        UsageError: a number that no machine has.
    """
    if (cores is not None and cores < 1) or (num_gpus is not None and num_gpus < 0):
        raise UsageError(f"a machine has 1 core or more and 0 GPUs or more; given {cores} and {num_gpus}")
    asked = cores is not None or num_gpus is not None
    cores = usable_cores() if cores is None else cores
    num_gpus = visible_gpus() if num_gpus is None else num_gpus
    gpus = plural(num_gpus, "GPU") if num_gpus else "no GPU"
    machine = f"a machine of {cores} cores, {gpus}" if asked else f"{processor_name()}, {gpus}"
    return LabsHere(machine, tuple(_row(spec, cores, num_gpus) for spec in labs.specs()))


def _row(spec: LabSpec, cores: int, num_gpus: int) -> LabHere:
    units = num_gpus or cores
    runs = "measured" if spec.ranks <= units else "measured; times show order, not speed"
    return LabHere(
        spec.number, spec.slug, spec.question, spec.ranks, runs, () if num_gpus else spec.needs_gpu, spec.simulated
    )
