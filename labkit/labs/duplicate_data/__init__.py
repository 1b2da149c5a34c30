"""Lab 03: what do you get from four ranks?"""

from __future__ import annotations

from dataclasses import dataclass

from ..spec import Exercise, LabSpec, Symptom, Variant, cases, lazy, setting, source_of

NUM_DIGITS = 1797


@dataclass(frozen=True, kw_only=True)
class Config:
    """What a run of this lab can be set to."""

    num_samples: int = setting(NUM_DIGITS, "size N of the data set: the first N of the 1,797 digits", low=2, high=NUM_DIGITS)
    batch: int = setting(32, "samples in the batch of one rank (B)", low=1, high=NUM_DIGITS)
    epochs: int = setting(2, "passes over the data", low=1, high=1000)
    steps: int = setting(0, "cap on the steps of the whole run; 0 is no cap", low=0, high=10_000_000)
    lr: float = setting(0.05, "learning rate of SGD", low=1e-9, high=100.0)
    momentum: float = setting(0.9, "momentum of SGD", low=0.0, high=0.9999)
    model: str = setting("mlp", "what is trained", choices=("mlp", "cnn"))
    dtype: str = setting("float32", "precision of weights and data", choices=("float32", "float64"))
    workers: int = setting(2, "DataLoader workers of each rank, for iterable-unsharded only", low=0, high=16)
    shards: int = setting(6, "files that a stream lies in, for the variants with shards", low=1, high=1000)
    val_share: float = setting(0.0, "share of the data held out for validation", low=0.0, high=0.9)


VARIANTS = (
    Variant(name="broken", summary="no sampler, and one seed for all: every rank reads the same batches"),
    Variant(
        name="overlapping", summary="no sampler, and a seed for each rank: every rank reads everything, in its own order"
    ),
    Variant(name="no-set-epoch", summary="a sampler, but nobody calls set_epoch: every epoch has the same order"),
    Variant(name="double-sharded", summary="the data are sharded twice: most of them are never read"),
    Variant(
        name="iterable-unsharded",
        summary="an IterableDataset that nobody shards: every worker of every rank reads all of it",
        defaults={"epochs": 1},
    ),
    Variant(
        name="uneven-shards",
        summary="a stream in files that are not a multiple of the ranks: all stop when the rank with the fewest ends",
    ),
    Variant(
        name="uneven-join",
        summary="the same files, under torch's Join: a rank that has ended takes part with gradients of 0 until all have",
        defaults={"epochs": 1},
    ),
    Variant(
        name="split-by-node",
        summary="the same files: where they cannot be dealt out evenly, each rank keeps every W-th sample of all",
    ),
    Variant(
        name="leaky-split",
        summary="each rank splits off a validation set of its own: other ranks train on those samples",
        defaults={"val_share": 0.2},
    ),
    Variant(name="fixed", summary="DistributedSampler and set_epoch: each sample once an epoch, in a new order"),
)


SPEC = LabSpec(
    number=3,
    slug="duplicate-data",
    title="Who reads what",
    question="What do you get from four ranks?",
    symptom="Four ranks train, the loss falls, every core is busy, and the epoch is no shorter than on one.",
    minutes=30,
    ranks=4,
    config=Config,
    variants=VARIANTS,
    detectors=("rank-duplicates", "worker-duplicates", "coverage", "order", "validation-leak"),
    plan=lazy(".programs:plan", __name__),
    measures=lazy("...detect.reads.measures:data_measures", __name__),
    main_measures=(
        "samples_per_epoch",
        "unique_samples",
        "unique_share_of_global_batch",
        "rank_overlap",
        "order_repeats",
        "val_leak",
    ),
    source=source_of(".programs:LOADERS", __name__),
    figures=("who-read-what", "coverage", "timeline", "loss"),
    controls=("batch", "num_samples"),
    exact_measures=("samples_per_epoch", "unique_samples", "copies_max", "padding", "order_repeats"),
    same_bits=("broken",),
    symptoms=(
        Symptom(
            "Four GPUs, and an epoch takes as long as on one; the loss falls all the same",
            "every rank reads the same data",
            ("broken",),
        ),
        Symptom(
            "More steps an epoch than size / (batch × ranks)",
            "each rank shuffles all of the data for itself",
            ("overlapping",),
        ),
        Symptom(
            "Every epoch brings the same batches in the same order",
            "the sampler never hears of the next epoch",
            ("no-set-epoch",),
        ),
        Symptom(
            "An epoch is suspiciously short", "the data are sharded twice; most of them are never read", ("double-sharded",)
        ),
        Symptom(
            "A stream in files: with some numbers of ranks an epoch hangs at its end, or misses data",
            "the ranks do not divide the number of files, and some end before others",
            ("uneven-shards",),
        ),
        Symptom(
            "An epoch grows with the number of workers",
            "every DataLoader worker yields the whole stream",
            ("iterable-unsharded",),
        ),
        Symptom(
            "Validation is better than the test set will be", "each rank splits off its own validation set", ("leaky-split",)
        ),
    ),
    theory=lazy(".theory:panel", __name__),
    mysteries=cases(
        {"num_samples": (96, 130, 301), "batch": (8, 16), "ranks": (2, 3, 4)},
        ("rank-duplicates", "broken"),
        ("rank-duplicates", "overlapping"),
        ("order", "no-set-epoch"),
        ("coverage", "double-sharded"),
        ("worker-duplicates", "iterable-unsharded"),
        ("validation-leak", "leaky-split"),
        ("", "fixed"),
    ),
    exercise=Exercise(
        task=(
            "Write the loader of rank `rank` among `world_size` for epoch `epoch`. Together the ranks must read each sample "
            "once an epoch (repeating at most a few at the end, so that all ranks take equally many steps), in a new order "
            "each epoch, whatever the size of the data."
        ),
        signature="def my_loader(data, rank, world_size, batch, seed, epoch):",
        check=lazy(".exercise:check", __name__),
        help=lazy(".help:first", __name__),
    ),
)
