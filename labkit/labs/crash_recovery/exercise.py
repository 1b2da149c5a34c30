"""Check a learner's training: kill it for real at a step that a seed picks, start it again, say what is not back."""

from __future__ import annotations

import inspect
import random
from typing import Any

from ...errors import LabkitError, RankFailed
from ...record.measures_crash import REFERENCE, attempts, first_difference, states_not_restored
from ...record.schema import Record

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
SEED = 8
TRIES = (
    {"ranks": 2, "precision": "fp16", "interval": 4},
    {"ranks": 3, "num_samples": 301, "global_batch": 50, "epochs": 4, "interval": 5},
)
"""Settings of the runs that are killed: with a scaler, and on three ranks with a size that divides nothing."""


def check(training: Any, lab: Any) -> list[str]:
    """What is still wrong with `training`, a class, in sentences; an empty list when nothing is."""
    if not inspect.isclass(training) or not all(callable(getattr(training, name, None)) for name in METHODS):
        return [f"give the class itself, with the methods {', '.join(METHODS)}: class MyTraining(Training)"]
    pick = random.Random(SEED)
    for settings in TRIES:
        step = pick.randrange(settings["interval"] + 1, 20)
        findings = _kill_it(training, lab, step, settings)
        if findings:
            return findings
    return []


def _kill_it(training: Any, lab: Any, step: int, settings: dict[str, Any]) -> list[str]:
    label = f"killed at step {step} on {settings['ranks']} ranks"
    rank = step % settings["ranks"]
    try:
        record = lab.run(training, kill_step=step, kill_rank=rank, deadline_s=60, max_restarts=1, **settings)
    except RankFailed as error:
        report = next(iter(error.ranks.values()))
        return [f"{label}: the run did not come to its end: rank {report.rank} {report.state}: {report.message}"]
    except LabkitError as error:
        return [f"{label}: the run did not come to its end: {error}"]
    return [f"{label}: {text}" for text in _judge(record)]


def _judge(record: Record) -> list[str]:
    run = record.run
    begun = attempts(run)[-1].first_step
    missing = states_not_restored(run)
    if missing is None:
        return [f"the run began again at step {begun}, and nothing that was saved was loaded"]
    findings = [f"{SAID.get(name, name)} did not come back" for name in missing]
    step = first_difference(run, record.runs[REFERENCE])
    if step is not None:
        findings.append(f"so the loss departs from the uninterrupted run's at step {step}, after a resume at step {begun}")
    elif not findings and record.run.ranks[0].digests != record.runs[REFERENCE].ranks[0].digests:
        findings.append("every state came back, but the final weights are not those of the uninterrupted run")
    return findings
