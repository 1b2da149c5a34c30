"""Lab 07: is the device waiting for data?"""

from __future__ import annotations

from dataclasses import dataclass

from ..spec import Case, Exercise, LabSpec, Symptom, Variant, cases, lazy, setting, source_of

NUM_DIGITS = 1797


@dataclass(frozen=True, kw_only=True)
class Config:
    """What a run of this lab can be set to."""

    num_samples: int = setting(512, "size N of the data set: the first N of the 1,797 digits", low=2, high=NUM_DIGITS)
    batch: int = setting(16, "samples in the batch of one rank", low=1, high=NUM_DIGITS)
    epochs: int = setting(2, "passes over the data", low=1, high=1000)
    steps: int = setting(0, "cap on the steps of the whole run; 0 is no cap", low=0, high=10_000_000)
    prep_ms: float = setting(50.0, "what preparing a full batch costs (D)", low=0.0, high=60_000.0)
    prep: str = setting("cpu", "what preparing is: processor time, or waiting", choices=("cpu", "wait"))
    compute_ms: float = setting(
        25.0, "how long a step computes at least, on a device of its own (C)", low=0.0, high=60_000.0
    )
    workers: int = setting(2, "DataLoader workers of each rank, where the variant has any", low=1, high=64)
    prefetch: int = setting(2, "batches that each worker prepares ahead (prefetch_factor)", low=1, high=1000)
    meet: bool = setting(True, "average gradients each step, so that no rank runs ahead; otherwise each trains for itself")
    source: str = setting(
        "local", "where scans are: in each rank, behind a store's link, or prepared in memory",
        choices=("local", "store", "memory"),
    )  # fmt: skip
    store_mbit: float = setting(80.0, "rate of the store's link in Mbit/s, all readers together", low=1.0, high=400_000.0)
    emulate_store: bool = setting(False, "let the store's server pace itself on loopback: simulated")
    scan: int = setting(4, "size of a scan: (32·scan)² bytes", low=1, high=64)
    lr: float = setting(0.05, "learning rate of SGD", low=1e-9, high=100.0)
    compare: str = setting(
        "suited",
        "which runs are made to compare with: those that suit the variant, all, or none",
        choices=("suited", "all", "nothing"),
    )


LOCK = {"prep": "wait", "prep_ms": 20.0, "compute_ms": 18.0}
"""A little over half of a step under the lock, and by waiting, so that cores play no part."""

STORE = {"source": "store", "prep": "wait", "prep_ms": 0.0}

SMALL = {"num_samples": (128,), "batch": (8,), "scan": (1,)}
"""Of records without a label."""

VARIANTS = (
    Variant(name="broken", summary="a DataLoader as in tutorials: each rank prepares a batch, then computes on it"),
    Variant(name="workers", summary="DataLoader workers prepare ahead while the device computes"),
    Variant(name="cached", summary="each sample is prepared once and kept on the local disk; no workers"),
    Variant(name="locked", summary="all ranks prepare under one lock that all processes share", defaults=LOCK),
    Variant(
        name="thread-locked", summary="the same with a threading.Lock, of which each process has its own", defaults=LOCK
    ),
    Variant(name="shared-store", summary="all ranks read from one store behind a slow link", defaults=STORE),
    Variant(
        name="shared-store-cached",
        summary="the same, but each sample is fetched once and kept on the local disk",
        defaults=STORE,
    ),
    Variant(
        name="workers-in-memory",
        summary="workers for data that are ready in memory: all they do is pass them on",
        defaults={"source": "memory", "prep_ms": 0.0, "compute_ms": 0.0, "num_samples": NUM_DIGITS, "batch": 32},
    ),
    Variant(name="dummy", summary="the dummy-batch test: the same ready batch in each step, no input at all"),
    Variant(name="fixed", summary="workers, and a cache on the local disk"),
)


SPEC = LabSpec(
    number=7,
    slug="input-pipeline",
    title="Input pipeline",
    question="Is the device waiting for data?",
    symptom="The model is small, the device is fast, every step is slow, and between two steps nothing computes.",
    minutes=40,
    ranks=2,
    config=Config,
    variants=VARIANTS,
    detectors=("starved-input", "cross-process-lock", "saturated-store", "needless-workers"),
    plan=lazy(".programs:plan", __name__),
    measures=lazy("...detect.input.measures:input_measures", __name__),
    main_measures=(
        "data_time",
        "compute_time",
        "data_share",
        "samples_per_s",
        "dummy_batch_ratio",
        "without_workers_ratio",
        "speed_up",
        "ranks_inside_the_lock",
        "store_rate_per_rank",
    ),
    source=source_of(".programs:LOADERS", __name__),
    figures=("saw-tooth", "data-beside-compute", "speed-up", "store-rate", "timeline", "loss"),
    controls=("prep", "prep_ms", "compute_ms", "workers", "prefetch", "num_samples", "batch", "store_mbit"),
    timed_detectors=("starved-input", "cross-process-lock", "saturated-store", "needless-workers"),
    invariants=lazy("...detect.input.measures:input_invariants", __name__),
    simulated=("the device: a step waits until compute_ms are over, so that ranks do not compete for this machine's cores",),
    needs_gpu=("copies from pinned memory", "decoding on the device"),
    symptoms=(
        Symptom(
            "Between two steps nothing computes, and on one ready batch the rate jumps",
            "each rank prepares a batch while its device waits",
            ("broken", "workers", "cached"),
        ),
        Symptom(
            "More ranks bring little, and most cores are idle",
            "the loaders of all ranks take one lock",
            ("locked", "thread-locked"),
        ),
        Symptom(
            "One rank reads fast, many read slowly",
            "the store that they share is at its limit",
            ("shared-store", "shared-store-cached"),
        ),
        Symptom("More workers made it slower", "the data are ready in memory", ("workers-in-memory",)),
    ),
    theory=lazy(".theory:panel", __name__),
    mysteries=(
        Case(  # by waiting, and six times as long as a step computes: where others use the cores the measures tell
            fault="starved-input",
            variant="broken",
            settings={**SMALL, "prep": ("wait",), "prep_ms": (60.0,), "compute_ms": (10.0,)},
            evidence=("data_share", "data_time", "dummy_batch_ratio"),
        ),
        *cases(
            SMALL,
            ("cross-process-lock", "locked"),
            ("", "fixed"),
        ),
        *cases(
            {"num_samples": (192,), "batch": (8,), "scan": (4,), "store_mbit": (40.0,)},
            ("saturated-store", "shared-store"),
        ),
        *cases(
            {"num_samples": (1797,), "batch": (32,)},
            ("needless-workers", "workers-in-memory"),
        ),
    ),
    exercise=Exercise(
        task=(
            "Write the loader of rank `rank`: together the ranks read each sample once an epoch, and data take under 10 % "
            "of a step from the second epoch on. The model and its step stay as they are. The loader is made once; an epoch "
            "is one pass over it, and `set_epoch` of its sampler is called for you."
        ),
        signature="def my_loader(data, rank, world_size, batch, seed):",
        check=lazy(".exercise:check", __name__),
        help=lazy(".help:first", __name__),
    ),
)
