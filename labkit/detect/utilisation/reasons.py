"""What the questions about utilisation say."""

from __future__ import annotations

from ..catalogue import Reason

REASONS = {
    # what is needed before anything can be said
    "no-flops-declared": Reason(
        "the program did not say what arithmetic a step needs",
        "declare it with probe.declare(matmul_params=, layers=, hidden=, seq=, precision=), and record "
        "probe.scalar('tokens', n) in each step",
    ),
    "no-tokens-declared": Reason(
        "the program did not say how many tokens a step trains",
        "declare it with probe.declare(matmul_params=, layers=, hidden=, seq=, precision=), and record "
        "probe.scalar('tokens', n) in each step",
    ),
    "no-ceiling-measured": Reason(
        "the record holds no measured ceiling",
        "run the lab, which measures one, or labkit bench, whose baseline is kept with every later run",
    ),
    # busy-not-useful
    "no-processor-time-recorded": Reason("the program did not record its processor time", "record the scalar cpu_s"),
    "processor-time-of-a-gpu-run": Reason("the processor's time says nothing of a GPU", "read the device's own counters"),
    "cores-busy": Reason("the program keeps the cores {busy:.0%} busy"),
    "cores-busy-beside-others": Reason(
        "the program keeps the cores {busy:.0%} busy, and would keep them {wanted:.0%} busy without other programs"
    ),
    "busy-training-nothing": Reason(
        "{kept}, and trains nothing: busy is not useful", "judge by MFU, not by utilisation; profile what runs"
    ),
    "busy-doing-little": Reason(
        "{kept}, and does {useful:.1%} of the arithmetic it could: busy is not useful",
        "judge by MFU, not by utilisation; profile what runs",
    ),
    "neither-busy-nor-idle": Reason(
        "{kept}: neither busy nor idle, and other work may have taken the rest", "run again on a quiet machine"
    ),
    "busy-with-what-the-model-needs": Reason("the cores are busy with arithmetic that the model needs"),
    "idle-and-it-shows": Reason("the cores are not busy: nothing useful runs, and it shows"),
    # flop-convention
    "no-flops-counted": Reason("the program counted no FLOPs", "count one step with torch's FlopCounterMode"),
    "counter-sees-what-the-formula-counts": Reason("the counter sees what the formula counts"),
    "counter-misses-attention": Reason(
        "the counter sees {ratio:.0%} of the formula: attention is missing, its fused operation is unknown to it",
        "count with scaled_dot_product_attention's MATH backend, or use the formula, and say which",
    ),
    "counter-and-formula-differ": Reason(
        "the counter sees {ratio:.2f} times what the formula counts",
        "say which convention an MFU uses: recomputation, causal halving and fused kernels count differently",
    ),
    # utilisation
    "too-few-timed-steps": Reason("the run has fewer than 2 timed steps", "run more steps (--steps 6)", "run more steps"),
    "faster-than-its-ceiling": Reason(
        "the run did more than the best product did, so its ceiling was measured too low",
        "run more steps on a quiet machine",
    ),
    "steps-vary-around-the-bound": Reason(
        "steps vary from {low:.0%} to {high:.0%} of the ceiling, on both sides of {bound:.0%}",
        "run more steps on a quiet machine",
    ),
    "steps-vary-with-other-programs": Reason(
        "steps vary from {low:.0%} to {high:.0%} of the ceiling, by what other programs left to them",
        "run more steps on a quiet machine",
    ),
    "slower-than-tuned": Reason(
        "{mfu:.0%} of what this device can do goes into the model, and the tuned program is {faster:.1f} times as fast",
        "try a larger batch and fused attention, one change at a time, and watch the MFU",
    ),
    "slower-than-tuned-for-want-of-data": Reason(
        "{mfu:.0%} of what this device can do goes into the model, and the tuned program is {faster:.1f} times as fast",
        "replace the loader by one ready batch (--set data=dummy): if the rate jumps, feed the device faster",
        "replace the loader by one ready batch: if the rate jumps, feed the device faster",
    ),
    "baseline-may-be-too-low": Reason(
        "the run does {mfu:.0%} of the baseline's best product, which may be too low: {doubts:and}",
        "end what else runs on this machine, measure again with labkit bench --refresh, and run again",
    ),
    "utilisation-passes": Reason("{mfu:.0%} of what this device was seen to do goes into the model: that passes"),
    "utilisation-is-poor": Reason(
        "{mfu:.0%} of what this device was seen to do goes into the model: that is poor, but not a fault by itself"
    ),
    "trains-nothing": Reason(
        "{mfu:.1%} of what this device was seen to do goes into the model: no step updates a weight",
        "find what keeps the device busy; it is not the model",
    ),
    "waits-for-data": Reason(
        "{mfu:.1%} of what this device was seen to do goes into the model: {waiting:.0%} of a step is spent waiting for "
        "data",
        "replace the loader by one ready batch (--set data=dummy): if the rate jumps, feed the device faster",
        "replace the loader by one ready batch: if the rate jumps, feed the device faster",
    ),
    "kernels-small-or-bound-by-memory": Reason(
        "{mfu:.1%} of what this device was seen to do goes into the model: the kernels are too small or move too much "
        "memory",
        "try a larger batch and fused attention, one change at a time, and watch the MFU",
    ),
}
