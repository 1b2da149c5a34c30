"""Lab 06: what does each stage of ZeRO save, and what does it cost?"""

from __future__ import annotations

from dataclasses import dataclass

from ...theory.strategies import STRATEGIES
from ..spec import Exercise, LabSpec, Symptom, Variant, cases, lazy, setting


@dataclass(frozen=True, kw_only=True)
class Config:
    """What a run of this lab can be set to."""

    layers: int = setting(4, "blocks of the GPT, each wrapped on its own", low=1, high=96)
    hidden: int = setting(48, "width of the GPT; a multiple of heads", low=4, high=16384)
    heads: int = setting(4, "attention heads", low=1, high=128)
    seq: int = setting(32, "tokens in a sequence", low=1, high=8192)
    vocab: int = setting(256, "rows of the embedding; 256 bytes, more are padding", low=256, high=1_000_000)
    batch: int = setting(2, "sequences in the batch of one rank (B)", low=1, high=4096)
    steps: int = setting(12, "optimizer steps; two warm up and one is counted", low=4, high=100_000)
    lr: float = setting(1e-3, "learning rate of Adam", low=1e-9, high=10.0)
    dtype: str = setting("float32", "precision of everything", choices=("float32", "float64"))
    room: float = setting(
        0.0, "memory of each device, in bytes a parameter; 0: enough for stage 2, no more", low=0.0, high=1000.0
    )
    replicas: int = setting(2, "groups of hsdp, each with a whole copy of the state", low=1, high=256)
    only: str = setting("", "strategies that compare runs, separated by commas; empty for all")
    live_parameters: int = setting(
        0, "weights that DeepSpeed stage 3 may keep gathered, and whole (its default: 1e9)", low=0, high=10**12
    )


VARIANTS = (
    Variant(name="broken", summary="stage 3 (FSDP2, resharding) on a slow link, although stage 2 would fit"),
    Variant(name="compare", summary="every strategy, on a fast and on the slow link, in one record"),
    *(Variant(name=strategy.name, summary=strategy.summary) for strategy in STRATEGIES.values()),
    Variant(
        name="deepspeed-defaults",
        summary="DeepSpeed stage 3 with its defaults: on a small model it keeps more than stage 2",
        defaults={"live_parameters": 10**9},
    ),
    Variant(name="optimizer-first", summary="FSDP2 with the optimizer made before the model is sharded: it learns nothing"),
    Variant(name="norm-of-shards", summary="FSDP1 with torch's clip_grad_norm_: each rank clips by its own norm"),
    Variant(
        name="seeds-differ", summary="FSDP2 from weights that differ by rank: shards of several models are put together"
    ),
    Variant(
        name="accumulate",
        summary="four micro-batches a step in four strategies, reduced in each and in the last alone: the bytes of each",
    ),
    Variant(
        name="mixed-precision",
        summary="FSDP2 with a MixedPrecisionPolicy: what gathering and reducing in bf16 saves, in bytes",
    ),
    Variant(name="fixed", summary="the cheapest strategy that fits"),
)


SPEC = LabSpec(
    number=6,
    slug="zero-stages",
    title="ZeRO stages",
    question="What does each stage of ZeRO save, and what does it cost?",
    symptom="The model trains and the loss falls; each step waits for weights that had already been there.",
    minutes=45,
    ranks=4,
    hosts=2,
    link="100mbit",
    config=Config,
    variants=VARIANTS,
    detectors=("wrong-stage", "optimizer-before-sharding", "per-rank-norm", "unequal-init"),
    timed_detectors=("wrong-stage",),
    plan=lazy(".plans:plan", __name__),
    measures=lazy("...detect.sharding.summary:zero_measures", __name__),
    main_measures=(
        "kept_after_backward",
        "peak",
        "fits",
        "dispatched",
        "on_the_wire",
        "step_time",
        "step_time_fast",
        "loss_gap",
    ),
    tables=lazy("...detect.sharding.summary:zero_tables", __name__),
    source=lazy(".plans:source", __name__),
    figures=("memory-over-a-step", "traffic-by-collective", "step-on-two-links", "loss-beside-one"),
    figures_that_name=("traffic-by-collective", "step-on-two-links"),
    controls=("layers", "hidden", "steps", "room"),
    exact_measures=(
        "own_account_missed_by",
        "collectives",
        "fits",
        "loss_follows_single",
        "optimizer_knows",
        "initial_weights",
    ),
    simulated=("what fits on 8 to 1,024 devices of 80 GB (by formula)",),
    symptoms=(
        Symptom(
            "Memory to spare, and steps that wait for weights",
            "a stage of ZeRO higher than the memory asks for",
            ("broken",),
        ),
        Symptom(
            "A sharded model whose loss stands still", "an optimizer made before the model was sharded", ("optimizer-first",)
        ),
        Symptom(
            "Clipping makes training worse on several GPUs",
            "each rank clips by the norm of its own shard",
            ("norm-of-shards",),
        ),
        Symptom(
            "A sharded run starts worse than one process",
            "ranks seeded apart; nobody made the weights equal",
            ("seeds-differ",),
        ),
        Symptom(
            "Stage 3 takes more memory than stage 2", "a small model, whose weights stay whole", ("deepspeed-defaults",)
        ),
    ),
    theory=lazy(".theory:panel", __name__),
    mysteries=cases(
        {"ranks": (2, 3, 4), "hosts": (1,), "layers": (2, 3), "hidden": (24, 32), "steps": (6,)},
        ("optimizer-before-sharding", "optimizer-first"),
        ("per-rank-norm", "norm-of-shards"),
        ("unequal-init", "seeds-differ"),
        ("", "fsdp2-no-reshard"),
    ),
    exercise=Exercise(
        task=(
            "For each case (parameters, devices, memory of a device, bytes a parameter) return the cheapest stage that "
            "fits: 0 for plain data parallelism, 1, 2 or 3 for ZeRO, or None where none fits."
        ),
        signature="def my_stage(case):",
        check=lazy(".exercise:check", __name__),
        help=lazy(".help:stage", __name__),
    ),
    builds=(
        Exercise(
            name="sharded-optimizer",
            task=(
                "Build an optimizer of ZeRO stage 1 from collectives and Adam. `parameters` are tensors in fp32, equal on "
                "all ranks; each rank finds its own gradients in .grad, not averaged. Return an object whose step() updates "
                "the weights of all ranks as Adam with the mean gradient would, to the bit. Beside weights and gradients a "
                "rank keeps Adam's two moments of its share, ⌈Ψ/W⌉ parameters, and a copy of its share's weights if you "
                "like. It sends no more than a reduce-scatter and an all-gather do."
            ),
            signature="def my_optimizer(parameters, lr):",
            check=lazy(".build:check", __name__),
            help=lazy(".help:sharded_optimizer", __name__),
        ),
    ),
)
