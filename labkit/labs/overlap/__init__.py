"""Lab 05: is communication hidden behind the backward pass?"""

from __future__ import annotations

from dataclasses import dataclass

from ..spec import Exercise, LabSpec, Symptom, Variant, cases, lazy, setting, source_of


@dataclass(frozen=True, kw_only=True)
class Config:
    """What a run of this lab can be set to."""

    layers: int = setting(12, "equal layers of the network; each is a part of the gradients", low=1, high=200)
    width: int = setting(512, "width of a layer; its gradients are 4·(width² + width) bytes", low=4, high=16384)
    batch: int = setting(2048, "samples of one rank in a step, all its micro-batches together", low=1, high=10**6)
    micro_batches: int = setting(1, "forward and backward passes in a step (K)", low=1, high=1000)
    bucket_mb: float = setting(1.0, "bucket_cap_mb of DDP where the variant does not set it, in MiB", low=1e-6, high=1e5)
    steps: int = setting(6, "steps; the first two, in which DDP sets its buckets up, are not measured", low=1, high=10**6)
    lr: float = setting(0.002, "learning rate of SGD", low=1e-9, high=100.0)
    parts_alone: bool = setting(True, "measure computing without a link, and the link without computing, too")
    sweep_mb: str = setting("", "bucket sizes of bucket-sweep, in MiB with commas between; 0 is one a parameter")


_ACCUMULATE = {"micro_batches": 4, "steps": 5}

VARIANTS = (
    Variant(name="broken", summary="one bucket for all gradients, so they are sent after the backward pass"),
    Variant(name="serial", summary="the backward pass first, then each gradient by hand, one after the other"),
    Variant(name="flat", summary="the backward pass first, then all gradients by hand, as one tensor"),
    Variant(name="ddp-default", summary="DDP with its defaults: a first bucket of 1 MiB, then 25 MiB each"),
    Variant(name="per-parameter", summary="a collective for each parameter: as early as possible, each with its latency"),
    Variant(name="bucket-sweep", summary="several bucket sizes in one run, in turn"),
    Variant(
        name="accumulate",
        summary="K micro-batches, each of which sends its gradients: K reductions a step",
        defaults=_ACCUMULATE,
    ),
    Variant(
        name="no-sync",
        summary="K micro-batches, with no_sync around forward and backward of all but the last: 1 reduction",
        defaults=_ACCUMULATE,
    ),
    Variant(
        name="no-sync-backward-only",
        summary="no_sync around the backward pass alone, which has no effect: K reductions",
        defaults=_ACCUMULATE,
    ),
    Variant(
        name="no-sync-around-all",
        summary="no_sync around every micro-batch: nothing is sent, and the ranks train apart",
        defaults=_ACCUMULATE,
    ),
    Variant(name="find-unused", summary="find_unused_parameters, although every parameter is used"),
    Variant(
        name="fp16-hook",
        summary="DDP with torch's fp16_compress_hook: each bucket is sent in half the bytes, rounded to fp16",
    ),
    Variant(name="fixed", summary="buckets that are small enough to leave during the backward pass"),
)


SPEC = LabSpec(
    number=5,
    slug="overlap",
    title="Overlap",
    question="Is communication hidden behind the backward pass?",
    symptom="Every rank computes, the loss falls, and each step ends with all of them waiting for the network.",
    minutes=40,
    ranks=2,
    hosts=2,
    link="400mbit",
    config=Config,
    variants=VARIANTS,
    detectors=(
        "exposed-communication",
        "missing-no-sync",
        "misplaced-no-sync",
        "per-parameter-reduction",
        "needless-find-unused",
        "late-rank",
    ),
    timed_detectors=("exposed-communication", "late-rank"),
    plan=lazy(".programs:plan", __name__),
    measures=lazy("...detect.overlap.summary:overlap_measures", __name__),
    main_measures=(
        "step_time",
        "exposed",
        "exposed_share",
        "hidden",
        "hidden_by_union",
        "best_bucket",
        "weights_equal_on_ranks",
    ),
    source=source_of(".programs:SHOWN", __name__),
    figures=("compute-over-comm", "compute-over-comm-run", "exposure", "bucket-sweep"),
    controls=("bucket_mb", "micro_batches", "layers", "width", "batch", "steps"),
    exact_measures=(
        "micro_batches",
        "reductions",
        "collectives_per_reduction",
        "gradient_bytes",
        "dispatched_bytes",
        "weights_equal_on_ranks",
    ),
    simulated=("the curve beside the bucket sweep, from a model of buckets that queue",),
    symptoms=(
        Symptom(
            "Each step ends with all ranks waiting, and the network is idle before",
            "gradients in one bucket, or reduced by hand after the backward pass",
            ("broken", "serial"),
        ),
        Symptom(
            "Accumulating four micro-batches costs four times the communication",
            "no `no_sync`, or around the backward pass alone",
            ("accumulate", "no-sync-backward-only"),
        ),
        Symptom(
            "Ranks' weights drift apart, without an error", "`no_sync` around every micro-batch", ("no-sync-around-all",)
        ),
        Symptom(
            "Hundreds of tiny collectives a step; a warning of unused parameters",
            "a bucket for each parameter; `find_unused_parameters` without need",
            ("per-parameter", "find-unused"),
        ),
        Symptom(
            "All ranks are equally slow, and one of them is the cause",
            "one comes late to each collective, and the others wait",
        ),
    ),
    theory=lazy(".theory:panel", __name__),
    mysteries=cases(
        {"layers": (5, 6, 7), "width": (128, 192), "batch": (256,), "steps": (5,), "parts_alone": (False,), "hosts": (1,)},
        ("missing-no-sync", "accumulate"),
        ("misplaced-no-sync", "no-sync-backward-only"),
        ("misplaced-no-sync", "no-sync-around-all"),
        ("per-parameter-reduction", "per-parameter"),
        ("needless-find-unused", "find-unused"),
        ("", "no-sync"),
    ),
    exercise=Exercise(
        task=(
            "Choose the bucket size for a link. `gradients` has num_bytes and ready_s of each gradient in the order in "
            "which they are ready, and backward_s; `link.seconds(num_bytes)` is the time of one all-reduce. Return "
            "bucket_cap_mb in MiB so that the step is within 5 % of the best."
        ),
        signature="def my_bucket_mb(gradients, link):",
        check=lazy(".exercise:check", __name__),
        help=lazy(".help:bucket_size", __name__),
    ),
    builds=(
        Exercise(
            name="bucketed-ddp",
            task=(
                "Build data parallelism from hooks and all_reduce. Make the weights equal to rank 0's. Send the gradients "
                "in buckets of at least `cap_bytes` (the last may be smaller), each from a hook as soon as it is full, with "
                "async_op=True. Return a function that is called after each backward pass: it waits, and leaves the mean "
                "over the ranks in each .grad. Some parameters may be frozen. Three steps in a row have to equal torch's "
                "DistributedDataParallel: on two ranks to the bit."
            ),
            signature="def my_ddp(module, cap_bytes):",
            check=lazy(".build:check", __name__),
            help=lazy(".help:bucketed_ddp", __name__),
        ),
    ),
)
