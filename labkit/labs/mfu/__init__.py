"""Lab 02: how much of the machine does useful arithmetic?"""

from __future__ import annotations

from dataclasses import dataclass

from ..spec import Capture, Exercise, LabSpec, Symptom, Variant, cases, lazy, setting, source_of

TUNED = {"batch": 4, "attention": "sdpa", "recompute": False, "data": "real", "data_wait_ms": 0.0}
"""The tuned end of the ladder; precision and compilation stay as the reader set them, for they do not pay everywhere."""


@dataclass(frozen=True, kw_only=True)
class Config:
    """What a run of this lab can be set to."""

    batch: int = setting(1, "sequences in a batch", low=1, high=4096)
    attention: str = setting("naive", "how attention is computed", choices=("naive", "sdpa"))
    recompute: bool = setting(False, "keep only each block's input, compute the rest again in the backward pass")
    precision: str = setting("fp32", "autocast to bf16, or not", choices=("fp32", "bf16"))
    compile: bool = setting(False, "torch.compile the model; needs a C++ compiler, takes half a minute")
    data: str = setting("real", "text from the loader, or one batch again and again", choices=("real", "dummy"))
    data_wait_ms: float = setting(0.0, "how long each batch takes to prepare, by waiting", low=0.0, high=60_000.0)
    compare: str = setting(
        "tuned",
        "what else is run: the top of the ladder and the ceiling, the ceiling, or nothing (lab 00's ceiling is taken)",
        choices=("tuned", "ceiling", "nothing"),
    )
    layers: int = setting(2, "blocks", low=1, high=128)
    hidden: int = setting(128, "width of the model", low=8, high=16384)
    heads: int = setting(8, "attention heads", low=1, high=256)
    seq: int = setting(1024, "tokens in a sequence", low=8, high=16384)
    steps: int = setting(3, "timed steps, after one to warm up", low=2, high=100_000)


VARIANTS = (
    Variant(name="broken", summary="batch 1, attention written out: many small kernels, much memory traffic"),
    Variant(name="batched", summary="broken, with a batch of 4", defaults={"batch": 4}),
    Variant(name="fused", summary="broken, with fused attention", defaults={"attention": "sdpa"}),
    Variant(
        name="recomputed",
        summary="fixed with recomputation: more arithmetic, fewer tokens a second",
        defaults={**TUNED, "recompute": True},
    ),
    Variant(
        name="starved",
        summary="fixed, with an input that is not ready in time",
        defaults={**TUNED, "data_wait_ms": 800.0},
    ),
    Variant(name="busy-not-useful", summary="no training at all: it adds arrays, and keeps the cores busy"),
    Variant(name="fixed", summary="the top of the ladder: batch 4, fused attention", defaults=TUNED),
)


BILLION = {"layers": 20, "hidden": 2048, "heads": 16, "seq": 2048, "steps": 10, "precision": "bf16"}
"""A model of 1.0e9 matmul weights, for a GPU."""

CAPTURES = (
    Capture(name="1-broken", variant="broken", on_gpu={**BILLION, "precision": "fp32"}),
    Capture(name="2-precision", variant="broken", settings={"precision": "bf16"}, on_gpu=BILLION),
    Capture(name="3-attention", variant="fused", on_gpu=BILLION),
    Capture(name="4-batch", variant="fixed", on_gpu={**BILLION, "batch": 16}),
    Capture(name="5-recomputed", variant="recomputed", on_gpu={**BILLION, "batch": 16}),
    Capture(name="6-compiled", variant="fixed", on_gpu={**BILLION, "batch": 16, "compile": True}),
    Capture(name="7-busy-not-useful", variant="busy-not-useful", on_gpu=BILLION),
)


SPEC = LabSpec(
    number=2,
    slug="mfu",
    title="MFU",
    question="How much of the machine does useful arithmetic?",
    symptom="The processor is at 100 %, the loss falls, and few tokens come out for the money.",
    minutes=45,
    ranks=1,
    config=Config,
    variants=VARIANTS,
    detectors=("utilisation", "busy-not-useful", "flop-convention"),
    plan=lazy(".programs:plan", __name__),
    measures=lazy("...detect.utilisation.measures:mfu_measures", __name__),
    main_measures=("tokens_per_s", "mfu_attention", "hfu", "busy_share", "data_share", "speed_of_tuned"),
    source=source_of(".programs:SHOWN", __name__),
    timed_detectors=("utilisation", "busy-not-useful"),
    captures=CAPTURES,
    needs_gpu=("fused attention kernels", "torch.compile where it pays", "a model of 1e9 weights", "tensor cores"),
    figures=("ladder", "flops", "published", "timeline", "loss"),
    controls=("batch", "attention", "recompute", "precision", "seq", "data_wait_ms"),
    symptoms=(
        Symptom(
            "The processor is at 100 %, and few tokens come out",
            "it moves memory, or computes what nobody needs",
            ("broken", "busy-not-useful"),
        ),
        Symptom(
            "A rate that looks too good on paper",
            "recomputation, a sparse peak or another convention in the figure",
            ("recomputed",),
        ),
        Symptom("The device idles between steps", "the input is not ready in time", ("starved",)),
    ),
    theory=lazy(".theory:panel", __name__),
    mysteries=(
        # a narrow model: at the lab's own width a busy machine hides how little of the ceiling is reached
        *cases({"seq": (512, 640), "hidden": (32,), "steps": (4,)}, ("utilisation", "broken")),
        *cases({"seq": (256, 512), "steps": (4,)}, ("busy-not-useful", "busy-not-useful"), ("", "fixed")),
    ),
    exercise=Exercise(
        task=(
            "MFU figures as people quote them, each with one mistake: write the function that finds it from what was run, "
            "and gives the right value."
        ),
        signature="def my_answers(case):",
        check=lazy(".exercise:check", __name__),
        help=lazy(".help:first", __name__),
    ),
)
