"""Check a learner's training: kill it for real at steps that are drawn, start it again, say what is not back."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable
from dataclasses import dataclass

from ...detect.crash.measures import REFERENCE, attempts, first_difference, states_not_restored, steps_that_count
from ...errors import LabkitError, RankFailed
from ...ranks.faults import Fault
from ...record.schema import Record, Run
from ..opened import OpenedLab

SAID = {
    "model": "the weights (self.model)",
    "optimizer": "the optimizer's momentum and learning rate (self.optimizer)",
    "scheduler": "how far the learning rate's schedule is (self.scheduler)",
    "scaler": "the scale of the loss (self.scaler)",
    "place": "the place in the data (self.sampler): epoch, and samples done",
    "rng-python": "python's random generator, of this rank",
    "rng-numpy": "numpy's random generator, of this rank",
    "rng-torch": "torch's random generator, of this rank",
}
METHODS = ("state_dict", "load_state_dict", "rank_state", "load_rank_state")
DEADLINE_S = 120.0


@dataclass(frozen=True)
class Try:
    """One run that is killed.

    Attributes:
        where: which place of a run it goes on from, in words.
        settings: of the run.
        kill_step, kill_rank: the crash.
        again_at: the step of a second crash, in the attempt after the first; None for one crash.
    """

    where: str
    settings: dict[str, int | str]
    kill_step: int
    kill_rank: int
    again_at: int | None = None

    @property
    def said(self) -> str:
        """What happens, without the step: a training that is right does not need to know it."""
        often = "once" if self.again_at is None else "twice"
        return f"killed {often} on {self.settings['ranks']} ranks, going on {self.where}"

    @property
    def faults(self) -> tuple[Fault, ...]:
        """The crashes. The launcher holds them: what the training is given does not name their steps."""
        first = Fault(kind="kill", rank=self.kill_rank, step=self.kill_step)
        if self.again_at is None:
            return (first,)
        return (first, Fault(kind="kill", rank=self.kill_rank, step=self.again_at, attempt=1))

    @property
    def told(self) -> str:
        """The settings, for the first of several findings."""
        return ", ".join(f"{name}={value}" for name, value in self.settings.items() if name != "ranks")


def _at_an_edge(draw: random.Random, an_epoch: int, epochs: int) -> int:
    return an_epoch * draw.randint(1, epochs - 1)


PLACES: tuple[tuple[str, Callable[[random.Random, int, int], int], tuple[str, ...]], ...] = (
    ("between two epochs", _at_an_edge, ("fp32", "fp16")),
    ("a step before the end of an epoch", lambda *how: _at_an_edge(*how) - 1, ("fp32", "fp16")),
    ("a step after the beginning of an epoch", lambda *how: _at_an_edge(*how) + 1, ("fp32", "fp16")),
    ("early", lambda draw, an_epoch, epochs: draw.randint(2, 3), ("fp16",)),
    ("late", lambda draw, an_epoch, epochs: an_epoch * epochs - draw.randint(2, an_epoch - 1), ("fp16",)),
)
"""(where a run goes on, after how many steps that is, precisions): early in fp16 the scaler still looks for its scale."""

SECOND_CRASH = 0.4
"""How often a run crashes a second time, after it went on."""


def drawn_tries(draw: random.Random) -> list[Try]:
    """A crash for each place, in runs whose sizes, seeds and precision are drawn."""
    return [_drawn(draw, *place) for place in draw.sample(PLACES, len(PLACES))]


def _drawn(draw: random.Random, where: str, goes_on_at: Callable[..., int], precisions: tuple[str, ...]) -> Try:
    ranks, an_epoch, epochs = draw.randint(2, 3), draw.randint(4, 9), draw.randint(3, 4)
    global_batch, total = draw.randint(20, 60), an_epoch * epochs
    resumed = goes_on_at(draw, an_epoch, epochs)
    interval = draw.choice([every for every in range(2, resumed + 1) if resumed % every == 0])
    kill_step = resumed + draw.randrange(min(interval, total - resumed))
    settings = {
        "ranks": ranks,
        "num_samples": an_epoch * global_batch - draw.choice((0, draw.randint(1, global_batch - ranks))),
        "global_batch": global_batch,
        "epochs": epochs,
        "interval": interval,
        "precision": draw.choice(precisions),
        "decay_every": draw.randint(2, 5),
        "seed": draw.randrange(2**31),
    }
    later = range(kill_step + 1, total)
    again_at = draw.choice(later) if later and draw.random() < SECOND_CRASH else None
    return Try(where, settings, kill_step, draw.randrange(ranks), again_at)


def check(training: type, lab: OpenedLab, seed: int) -> list[str]:
    """What is still wrong with `training`, a class, in sentences; an empty list when nothing is."""
    if not inspect.isclass(training) or not all(callable(getattr(training, name, None)) for name in METHODS):
        return [f"give the class itself, with the methods {', '.join(METHODS)}: class MyTraining(Training)"]
    for each in drawn_tries(random.Random(seed)):
        findings = _kill_it(training, lab, each)
        if findings:
            return findings
    return []


def _kill_it(training: type, lab: OpenedLab, each: Try) -> list[str]:
    how = {**each.settings, "kill": "none", "max_restarts": len(each.faults)}
    try:
        record = lab.run(training, faults=each.faults, deadline_s=DEADLINE_S, **how)
    except RankFailed as error:
        report = next(iter(error.ranks.values()))
        return [f"{each.said}: the run did not come to its end: rank {report.rank} {report.state}: {report.message}"]
    except LabkitError as error:
        return [f"{each.said}: the run did not come to its end: {error}"]
    findings = [f"{each.said}: {text}" for text in _judge(record)]
    return [f"{text} ({each.told})" if number == 0 else text for number, text in enumerate(findings)]


def _judge(record: Record) -> list[str]:
    """Beside the run of the lab's own training that nothing interrupts: every state, every loss, every weight."""
    run, reference = record.run, record.runs[REFERENCE]
    begun = [attempt.first_step for attempt in attempts(run)[1:] if attempt.first_step is not None]
    resumed = " and ".join(map(str, begun))
    missing = states_not_restored(run)
    if missing is None:
        return [f"the run began again at step {resumed}, and nothing that was saved was loaded"]
    findings = [f"{SAID.get(name, name)} did not come back" for name in missing]
    step = first_difference(run, reference)
    if step is not None and not missing and step < min(begun, default=0):
        return [f"the training is another than the lab's at step {step} already: complete the four methods, no more"]
    if step is not None:
        findings.append(f"so the loss departs from the uninterrupted run's at step {step}, after a resume at step {resumed}")
    elif not findings and _left_out(run, reference):
        findings.append(f"{_left_out(run, reference)} steps of the uninterrupted run were not done")
    elif not findings and any(a.digests != b.digests for a, b in zip(run.ranks, reference.ranks, strict=True)):
        findings.append("every state came back, but the final weights are not those of the uninterrupted run")
    return findings


def _left_out(run: Run, reference: Run) -> int:
    done, wanted = steps_that_count(run), steps_that_count(reference)
    return sum(len(set(wanted[rank]) - set(done.get(rank, {}))) for rank in wanted)
