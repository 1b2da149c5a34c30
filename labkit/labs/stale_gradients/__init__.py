"""Lab 04: what does it cost not to wait?"""

from __future__ import annotations

from dataclasses import dataclass

from ..spec import Capture, Exercise, LabSpec, Symptom, Variant, cases, lazy, setting, source_of

NUM_DIGITS = 1797


@dataclass(frozen=True, kw_only=True)
class Config:
    """What a run of this lab can be set to."""

    lr: float = setting(
        0.2,
        "learning rate of SGD; 0 takes 0.8 of the stability limit for the delay W - 1, at the curvature that a first, short "
        "training in one process meets",
        low=0.0,
        high=100.0,
    )
    momentum: float = setting(0.9, "momentum of SGD", low=0.0, high=0.9999)
    straggler: float = setting(1.0, "how many times as long the last rank takes for a gradient (k)", low=1.0, high=100.0)
    bound: int = setting(
        0,
        "staleness bound: a rank waits when it is more than this many gradients ahead of the slowest; 0: none",
        low=0,
        high=10_000,
    )
    serve: str = setting(
        "arrival",
        "order in which the server takes gradients: as they arrive, or rank by rank",
        choices=("arrival", "in-turn"),
    )
    steps: int = setting(100, "gradients of each rank, on average: a run takes W times as many", low=1, high=100_000)
    batch: int = setting(32, "samples in the batch of one rank (B)", low=1, high=NUM_DIGITS)
    num_samples: int = setting(NUM_DIGITS, "size of the data set: the first of the 1,797 digits", low=2, high=NUM_DIGITS)
    step_ms: float = setting(
        8.0,
        "a gradient takes at least this long, by waiting: so ranks that share a core compute as if each had its own",
        low=0.0,
        high=10_000.0,
    )
    dtype: str = setting("float32", "precision of weights and data", choices=("float32", "float64"))
    repeats: int = setting(1, "how often the run is repeated, to see whether it comes out the same", low=0, high=20)
    compare: str = setting(
        "yes", "whether what it is compared with runs too: synchronous ranks, or one process", choices=("yes", "no")
    )


UNLABELLED = {"steps": (14, 16), "ranks": (3, 4), "step_ms": (10.0,), "repeats": (0,)}
"""Settings of records without a label, each with its values to draw from."""

BY_THEORY = {"lr": 0.0, "momentum": 0.0}

VARIANTS = (
    Variant(name="broken", summary="asynchronous, with the learning rate and the momentum of the synchronous run"),
    Variant(
        name="async-no-momentum",
        summary="asynchronous, and without momentum",
        defaults={"momentum": 0.0},
    ),
    Variant(
        name="async-theory-lr",
        summary="asynchronous, with a learning rate from the theory of delayed gradients",
        defaults=BY_THEORY,
    ),
    Variant(
        name="async-straggler",
        summary="async-theory-lr with one rank that takes four times as long: nobody waits for it",
        defaults={**BY_THEORY, "straggler": 4.0},
    ),
    Variant(
        name="async-bounded",
        summary="async-straggler with a bound: nobody may be more than two gradients ahead of the slow rank",
        defaults={**BY_THEORY, "straggler": 4.0, "bound": 2},
    ),
    Variant(
        name="async-in-turn",
        summary="asynchronous, and served rank by rank: as stale as before, and repeatable",
        defaults={**BY_THEORY, "serve": "in-turn"},
    ),
    Variant(
        name="sync-straggler",
        summary="synchronous with one rank that takes four times as long: everybody waits for it",
        defaults={"straggler": 4.0},
    ),
    Variant(name="fixed", summary="synchronous: all ranks average their gradients, then step together"),
)


SPEC = LabSpec(
    number=4,
    slug="stale-gradients",
    title="Stale gradients",
    question="What does it cost not to wait?",
    symptom="Workers no longer wait for each other, every device is busy, more samples go by in a second, and the loss "
    "does not fall.",
    minutes=40,
    ranks=4,
    config=Config,
    variants=VARIANTS,
    detectors=("stale-gradients", "repeatable", "straggler"),
    plan=lazy(".programs:plan", __name__),
    measures=lazy("...detect.staleness.measures:staleness_measures", __name__),
    main_measures=(
        "staleness_mean",
        "staleness_max",
        "lr_over_limit",
        "loss_final",
        "samples_per_s",
        "throughput_over_sync",
        "weights_repeat",
    ),
    source=source_of(".programs:SHOWN", __name__),
    figures=("who-computed-on-what", "staleness", "loss-both-ways", "stability"),
    controls=("lr", "momentum", "straggler", "bound", "steps", "batch"),
    exact_measures=("pushes", "mean_staleness_as_derived", "weights_repeat"),
    timed_detectors=("straggler",),
    captures=(Capture(name="broken", variant="broken"), Capture(name="fixed", variant="fixed")),
    needs_gpu=("what a message costs beside a gradient on a real cluster",),
    simulated=("the time of a device of one's own, and a straggler's: a rank waits in its place",),
    symptoms=(
        Symptom(
            "Workers no longer wait for each other, more samples go by, and the loss swings or stands still",
            "gradients that are too old for the learning rate and the momentum",
            ("broken",),
        ),
        Symptom(
            "Two runs with one seed give different weights",
            "gradients applied in the order in which they arrive",
            ("broken",),
        ),
        Symptom(
            "A slow device contributes few gradients, and they are old",
            "nobody waits for the straggler",
            ("async-straggler", "async-bounded"),
        ),
        Symptom("Every step takes as long as the slowest device's", "all wait for a straggler", ("sync-straggler",)),
    ),
    theory=lazy(".theory:panel", __name__),
    mysteries=(
        *cases(UNLABELLED, ("stale-gradients", "broken"), ("", "fixed")),
        # so slow that it is the slow one on a busy machine too
        *cases({**UNLABELLED, "straggler": (80.0,)}, ("straggler", "sync-straggler")),
    ),
    exercise=Exercise(
        task=(
            "Pick the learning rate of `workers` asynchronous workers without momentum, where the curvature of the loss "
            "along the way is at most `sharpness`: as large as is still safe, from the theory."
        ),
        signature="def my_lr(workers, sharpness):",
        check=lazy(".exercise:check", __name__),
        help=lazy(".help:first", __name__),
    ),
)
