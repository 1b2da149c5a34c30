"""Lab 08: can the run go on as if nothing had happened?"""

from __future__ import annotations

from dataclasses import dataclass

from ...theory.departures import STATES
from ..spec import Exercise, LabSpec, Symptom, Variant, cases, lazy, setting, source_of

NUM_DIGITS = 1797
KILLS = ("rank", "save", "all", "node", "hang", "none")


@dataclass(frozen=True, kw_only=True)
class Config:
    """What a run of this lab can be set to."""

    num_samples: int = setting(590, "size N of the data set: the first N of the 1,797 digits", low=2, high=NUM_DIGITS)
    global_batch: int = setting(60, "samples of one step, all ranks together", low=1, high=NUM_DIGITS)
    epochs: int = setting(3, "passes over the data", low=1, high=1000)
    steps: int = setting(0, "cap on the steps of the whole run; 0 is no cap", low=0, high=10_000_000)
    lr: float = setting(0.2, "learning rate of SGD", low=1e-9, high=100.0)
    momentum: float = setting(0.9, "momentum of SGD", low=0.0, high=0.9999)
    decay_every: int = setting(4, "steps after which the learning rate falls to 0.9 times", low=1, high=10_000_000)
    dropout: float = setting(0.2, "share of the hidden units dropped; 0 draws no random number", low=0.0, high=0.9)
    augment: bool = setting(True, "change each batch's contrast (python's generator) and add noise (numpy's)")
    hidden: int = setting(64, "width of the two hidden layers: sets the size of a checkpoint", low=1, high=2048)
    precision: str = setting("fp32", "fp16: autocast with a GradScaler, whose scale is state", choices=("fp32", "fp16"))
    interval: int = setting(5, "steps between checkpoints", low=1, high=10_000_000)
    light_interval: int = setting(2, "steps between light checkpoints, for light only", low=1, high=10_000_000)
    kill: str = setting(
        "rank",
        "what is killed: one rank, one rank within a save, all ranks, one rank together with its node's disk; hang: one "
        "rank lives on and does nothing",
        choices=KILLS,
    )
    kill_step: int = setting(
        17, "the step at whose start it is killed; for save, the first save from then on", low=0, high=10_000_000
    )
    kill_rank: int = setting(0, "which rank is killed", low=0, high=255)
    timeout_s: float = setting(
        5.0,
        "how long a collective waits before it raises, where a rank is to hang; 0: as torch sets it, 30 minutes on gloo",
        low=0.0,
        high=86400.0,
    )
    leave_out: str = setting("nothing", "state that is not restored", choices=("nothing", *STATES))
    resume_ranks: int = setting(0, "ranks that the run goes on with after a stop at kill_step; 0: as many", low=0, high=256)
    max_restarts: int = setting(3, "how often the elastic agent may start the ranks again", low=0, high=1000)
    mtbf_s: float = setting(
        0.0, "mean time between failures to judge the interval by, in seconds; 0: not known", low=0.0, high=1e12
    )

    @property
    def steps_per_epoch(self) -> int:
        """Steps of one epoch; the last may be smaller."""
        return -(-self.num_samples // self.global_batch)

    @property
    def total_steps(self) -> int:
        """Steps of the whole run."""
        steps = self.epochs * self.steps_per_epoch
        return min(steps, self.steps) if self.steps else steps


VARIANTS = (
    Variant(name="broken", summary="saves nothing: after a crash the run begins again at step 0"),
    Variant(name="model-and-epoch", summary="saves weights and epoch after each epoch, as many tutorials do"),
    Variant(name="light", summary="full checkpoints, with weights alone in between; goes on from the newest of both"),
    Variant(
        name="one-path",
        summary="every rank saves everything to the same path, so the last writer wins",
    ),
    Variant(
        name="local-disk",
        summary="each rank saves to its own node's disk, and then a node is lost",
        defaults={"kill": "node"},
    ),
    Variant(name="async-save", summary="copies all state at once, and writes it while training goes on"),
    Variant(name="fixed", summary="all state of all ranks, to shared storage; a checkpoint is complete or does not exist"),
)


SPEC = LabSpec(
    number=8,
    slug="crash-recovery",
    title="Crash recovery",
    question="Can the run go on as if nothing had happened?",
    symptom="A rank dies, the launcher starts them all again, the loss falls on; and work is lost, or the run is another.",
    minutes=40,
    ranks=2,
    config=Config,
    variants=VARIANTS,
    detectors=("lost-work", "resume-departs", "single-path", "local-disk", "checkpoint-interval"),
    plan=lazy(".programs:plan", __name__),
    measures=lazy("...detect.crash.measures:crash_measures", __name__),
    main_measures=("restarts", "lost_steps", "departs_at", "weights_equal_uninterrupted", "save_stall_ms", "goodput"),
    source=source_of(".keepers:KEEPERS", __name__),
    figures=("crash-timeline", "departure", "ablation", "goodput"),
    controls=("kill", "kill_step", "kill_rank", "interval", "leave_out", "num_samples"),
    exact_measures=("restarts", "lost_steps", "resumed_at", "departs_at", "weights_equal_uninterrupted"),
    timed_detectors=("checkpoint-interval",),
    simulated=("the goodput of clusters, by formula and by seeded simulation",),
    needs_gpu=("random generators of GPUs, and the time that large checkpoints take",),
    symptoms=(
        Symptom(
            "A rank dies, the launcher starts all again, and hours are gone",
            "nothing was saved, or it went with the node",
            ("broken", "local-disk"),
        ),
        Symptom(
            "After a restart the loss jumps, or the run ends elsewhere than it should",
            "weights came back; momentum, schedule, random numbers and the place in the data did not",
            ("model-and-epoch", "light"),
        ),
        Symptom(
            "After a restart one rank is right and the others are not",
            "every rank saved to one path, and the last one won",
            ("one-path",),
        ),
        Symptom("Saves take a large part of the time", "they are too frequent, or training waits for each", ("async-save",)),
    ),
    theory=lazy(".theory:panel", __name__),
    mysteries=cases(
        {"ranks": (2, 3), "num_samples": (240, 301), "global_batch": (40, 50), "epochs": (3,), "kill_step": (11, 12, 13)},
        ("lost-work", "broken"),
        ("resume-departs", "model-and-epoch"),
        ("resume-departs", "light"),
        ("single-path", "one-path"),
        ("local-disk", "local-disk"),
        ("", "fixed"),
        ("", "async-save"),
    ),
    exercise=Exercise(
        task=(
            "Complete the four methods, so that a run that is killed at any step and started again ends with the weights of "
            "the run that nothing interrupts. `state_dict` is what all ranks share, `rank_state` is a rank's own; the "
            "first is loaded before the loader starts, the second after it."
        ),
        signature="class MyTraining(Training):",
        check=lazy(".exercise:check", __name__),
        help=lazy(".help:first", __name__),
    ),
)
