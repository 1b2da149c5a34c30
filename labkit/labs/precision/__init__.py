"""Lab 01: does mixed precision pay here, and what breaks without care?"""

from __future__ import annotations

from dataclasses import dataclass

from ..spec import Exercise, LabSpec, Symptom, Variant, cases, lazy, setting, source_of


@dataclass(frozen=True, kw_only=True)
class Config:
    """What a run of this lab can be set to."""

    model: str = setting(
        "mlp", "what is trained: two networks on digits, or a byte-level GPT", choices=("mlp", "cnn", "gpt")
    )
    batch: int = setting(64, "samples in a batch (B)", low=1, high=1797)
    epochs: int = setting(4, "passes over the digits; for the GPT, 28 batches each", low=1, high=1000)
    steps: int = setting(0, "cap on the steps of the whole run; 0 is no cap", low=0, high=1_000_000)
    optimizer: str = setting("adam", "the optimizer", choices=("adam", "sgd"))
    lr: float = setting(3e-3, "learning rate", low=1e-9, high=100.0)
    eps: float = setting(1e-12, "eps of Adam; it must be far smaller than the gradients of a small loss", low=0.0, high=1.0)
    loss_weight: float = setting(1e-5, "the weight of the loss: it is one term among several", low=1e-12, high=1e38)
    clip_norm: float = setting(0.0, "largest norm of the gradients; 0 does not clip", low=0.0, high=1e9)
    fixed_batch: bool = setting(False, "every step takes the same batch")
    init_scale: float = setting(65536.0, "the scaler's first scale (torch's own default)", low=1.0, high=2.0**60)
    growth_interval: int = setting(
        2000, "steps without overflow after which the scaler doubles its scale", low=1, high=10**6
    )
    repeats: int = setting(9, "how often the steps' time is measured, against fp32; 0 measures none", low=0, high=100)
    timed_steps: int = setting(10, "steps in each of these measurements", low=1, high=10_000)
    threads: int = setting(1, "threads of the process; models as small as these gain nothing from more", low=1, high=256)


_SMALL_FOR_FP16 = {"optimizer": "sgd", "lr": 1e-3, "loss_weight": 1.0}
"""Updates of 1e-5 and less on weights of up to 0.1, where fp16's numbers lie 6e-5 apart: under half of that is nothing."""

_SMALL_FOR_BF16 = {"lr": 1e-4, "batch": 16, "loss_weight": 1.0}
"""Updates of 1e-4, as Adam makes them, where bf16's numbers lie 5e-4 apart."""

VARIANTS = (
    Variant(name="broken", summary="fp16 autocast without a scaler: small gradients become 0"),
    Variant(name="fp32", summary="plain fp32: all others are compared with it"),
    Variant(name="tf32", summary="fp32 whose matrix products round their inputs to tf32; needs a GPU"),
    Variant(name="bf16-autocast", summary="bf16 autocast: fp32's range, so no scaler"),
    Variant(name="half-weights", summary="weights made fp16 by .half(): small updates round away", defaults=_SMALL_FOR_FP16),
    Variant(
        name="bf16-weights",
        summary="weights in bf16, without a master copy in fp32: small updates round away",
        defaults=_SMALL_FOR_BF16,
    ),
    Variant(
        name="bf16-kahan",
        summary="weights in bf16, and a second bf16 number for each that keeps what rounding took",
        defaults=_SMALL_FOR_BF16,
    ),
    Variant(
        name="bf16-stochastic",
        summary="weights in bf16, rounded up or down by chance, so that small updates count in the mean",
        defaults=_SMALL_FOR_BF16,
    ),
    Variant(
        name="autocast-whole-loop",
        summary="one autocast context around the whole loop: every step computes with the first casts of the weights",
        defaults={"fixed_batch": True, "steps": 20, "loss_weight": 1.0},
    ),
    Variant(
        name="clip-before-unscale",
        summary="gradients are clipped while they still carry the scale: 1/scale of them is left",
        defaults={"optimizer": "sgd", "lr": 0.1, "loss_weight": 1.0, "clip_norm": 1.0},
    ),
    Variant(name="fixed", summary="fp16 autocast with a GradScaler"),
)


SPEC = LabSpec(
    number=1,
    slug="precision",
    title="Precision",
    question="Does mixed precision pay here, and what breaks without care?",
    symptom="Training in 16 bits raises no error, the loss is a number, and the model learns little or nothing.",
    minutes=40,
    ranks=1,
    config=Config,
    variants=VARIANTS,
    detectors=(
        "gradient-underflow",
        "stale-casts",
        "clip-before-unscale",
        "lost-updates",
        "skipped-steps",
        "non-finite",
        "precision-speed",
    ),
    timed_detectors=("precision-speed",),
    needs_gpu=("the variant tf32", "what matrix units of a GPU gain in 16 bits"),
    plan=lazy(".programs:plan", __name__),
    measures=lazy("...detect.precision.summary:precision_measures", __name__),
    main_measures=(
        "final_loss",
        "final_loss_fp32",
        "zero_gradients",
        "lost_updates",
        "never_moved",
        "skipped_steps",
        "first_nonfinite_step",
        "step_time_ratio_to_fp32",
    ),
    source=source_of(".loops:LOOPS", __name__),
    figures=("loss-beside-fp32", "gradient-range", "zeros-and-scale", "precision-speed"),
    controls=("model", "optimizer", "lr", "loss_weight"),
    exact_measures=(
        "updates",
        "skipped_steps",
        "first_nonfinite_step",
        "loss_stands_still",
        "weights_bytes",
        "gradients_bytes",
        "weights_equal_fp32",
    ),
    symptoms=(
        Symptom(
            "A step in 16 bits is no faster than in 32",
            "the device has no units for it, or the products are too small",
            ("bf16-autocast",),
        ),
        Symptom(
            "fp16: the loss falls slower than it should, or stands still, without an error",
            "gradients that round to zero",
            ("broken",),
        ),
        Symptom(
            "The loss stands still, or hardly moves",
            "weights or casts that no update reaches",
            ("half-weights", "bf16-weights", "autocast-whole-loop"),
        ),
    ),
    theory=lazy(".theory:panel", __name__),
    mysteries=cases(
        {"repeats": (0,)},
        ("gradient-underflow", "broken"),
        ("lost-updates", "half-weights"),
        ("lost-updates", "bf16-weights"),
        ("stale-casts", "autocast-whole-loop"),
        ("clip-before-unscale", "clip-before-unscale"),
        ("", "fixed"),
        ("", "bf16-autocast"),
        ("", "bf16-kahan"),
    ),
    exercise=Exercise(
        task=(
            "Repair the loop: it trains in fp16, and three things are wrong with it. Keep the forward pass in fp16 "
            "autocast, keep the clipping to `config.clip_norm`, and make the model learn as fp32 does. `scaler` is a "
            "torch.amp.GradScaler for this device; `batches` gives (inputs, targets)."
        ),
        signature="def my_loop(model, optimizer, scaler, batches, device, config):",
        check=lazy(".exercise:check", __name__),
        help=lazy(".help:first", __name__),
    ),
)
