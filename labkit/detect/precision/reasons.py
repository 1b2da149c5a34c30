"""What the questions about precision say."""

from __future__ import annotations

from ..catalogue import Reason

REASONS = {
    # clip-before-unscale
    "no-clipping-declared": Reason(
        "the program declares no clipping", "declare it with probe.declare(clip_norm=...), where it clips"
    ),
    "no-scaler-in-use": Reason("no gradient scaler is used, so gradients carry no scale"),
    "too-few-scaled-norms": Reason(
        "only {seen:plural update/updates} with a norm and a scale of {smallest:g} or more were seen",
        "run more steps; a scale near 1 hides the order",
    ),
    "norms-are-those-before-clipping": Reason(
        "the recorded norms are larger than clip_norm: they are those before clipping, which clip_grad_norm_ returns, and "
        "do not tell whether the scale was in them",
        "record grad_norm in a hook of the optimizer, which sees what it takes: optimizer.register_step_pre_hook(lambda *_: "
        'probe.scalar("grad_norm", torch.nn.utils.get_total_norm([p.grad for p in model.parameters()])))',
    ),
    "clipped-while-scaled": Reason(
        "gradients come to the optimizer with a norm of {norm:.2g}, which is {clip_norm:g} divided by the scale of "
        "{scale:,.0f}: they were clipped before the scale was taken out",
        "call scaler.unscale_(optimizer) after backward and before clip_grad_norm_",
    ),
    "nothing-is-clipped": Reason("the program clips no gradients", "run it as you train, with clipping where you use it"),
    "clipped-before-unscale-was-called": Reason(
        "gradients were clipped {clips:plural time/times} while they still carried the scaler's scale: their norm is a "
        "thousandth of the one that was asked for, or less",
        "call scaler.unscale_(optimizer) after backward and before clip_grad_norm_",
    ),
    "clipped-after-unscaling": Reason("gradients are clipped, if at all, after the scale is taken out"),
    "gradients-too-small-to-clip": Reason(
        "most gradients are smaller than either order would clip, or the two alternate",
        "clip at a smaller norm, or run where gradients are larger",
    ),
    # gradient-underflow
    "every-step-was-skipped": Reason(
        "the scaler skipped every step, so the optimizer took no gradient",
        "find out first why the scaler skips every step",
    ),
    "no-gradients-recorded": Reason(
        "the program recorded no gradients",
        "record counts updates, gradient_elements and gradient_zeros as the optimizer steps",
    ),
    "no-fp32-run-to-compare-zeros": Reason(
        "there is no fp32 run to compare with, and ReLU and blank inputs make zeros in any precision",
        "run the same steps in fp32 too, as the record's reference",
    ),
    "too-few-finite-gradients": Reason(
        "only {compared:plural update/updates} with finite gradients can be compared",
        "run {enough} steps or more; where gradients are not finite, repair that first",
    ),
    "gradients-below-the-smallest-number": Reason(
        "{own:.0%} of the gradient elements are exactly 0, in fp32 {fp32:.0%}: {lost:.0%} of what fp32 keeps lies below the "
        "smallest number of the 16-bit format",
        "scale the loss with torch.amp.GradScaler (scale, step, update), or compute in bf16, which has fp32's range",
    ),
    "zeros-as-in-fp32": Reason("zeros are as frequent as in fp32, within {within:.0%}"),
    "zeros-vary-from-step-to-step": Reason(
        "zeros exceed fp32's by {more:.0%}, but from step to step the share varies as much", "run more steps"
    ),
    # lost-updates
    "no-finite-update": Reason(
        "no update with finite weights and gradients other than 0 was seen",
        "find out first why weights or gradients are not finite, or all gradients are 0",
    ),
    "lost-updates-not-recorded": Reason(
        "the program did not record which updates change a weight",
        "record counts updates_lost, gradient_elements and gradient_zeros as the optimizer steps",
    ),
    "no-fp32-run-to-compare-updates": Reason(
        "there is no fp32 run to compare with: with a tiny learning rate fp32 loses updates too",
        "run the same steps in fp32 too, as the record's reference",
    ),
    "too-few-updates-to-compare": Reason(
        "only {compared:plural update/updates} can be compared", "run {enough} steps or more"
    ),
    "updates-round-away": Reason(
        "{own:.0%} of the updates leave their weight as it was, in the fp32 run {fp32:.1%}: they are less than half the gap "
        "to the weight's neighbour",
        "keep the weights in fp32 and compute under torch.autocast, instead of .half() or .bfloat16(); if they must be 16 "
        "bits, give the optimizer an fp32 master copy",
    ),
    "updates-round-away-in-fp32-weights": Reason(
        "{own:.0%} of the updates leave their weight as it was, in the fp32 run {fp32:.1%}: they are less than half the gap "
        "to the weight's neighbour, even in fp32",
        "the weights are fp32 already: find out what makes the gradients so small (clipping, scaling, the learning rate)",
    ),
    "updates-come-through": Reason(
        "{own:.0%} of the updates leave their weight as it was, and after {steps:plural update/updates} only {still:.1%} of "
        "the weights hold their first value: what rounding takes from one update comes back in a later one"
    ),
    "updates-may-come-through": Reason(
        "{own:.0%} of the updates leave their weight as it was, and after {steps:plural update/updates} {still:.0%} of the "
        "weights hold their first value: too few updates to tell whether they come through",
        "run more steps",
    ),
    "updates-lost-as-in-fp32": Reason("updates are lost no more often than in fp32, within {within:.0%}"),
    "lost-updates-vary-from-step-to-step": Reason(
        "{more:.0%} more updates are lost than in fp32, but from step to step the share varies as much", "run more steps"
    ),
    # non-finite
    "no-loss-recorded": Reason("the program recorded no loss", "record it with probe.scalar('loss_local', loss.item())"),
    "too-few-finite-steps": Reason(
        "every value is finite, but the run has only {seen:plural step/steps}", "run {enough} steps or more"
    ),
    "all-is-finite": Reason("loss and weights are finite in all {steps} steps"),
    "weights-not-finite": Reason(
        "the weights hold NaN or infinity at step {step}{on}, and no error is raised{after}",
        "keep weights and optimizer state in fp32 (autocast instead of .half()): in fp16 Adam's eps and squared gradients "
        "round to 0, and 0/0 is NaN",
    ),
    "gradients-not-finite": Reason(
        "the gradients hold NaN or infinity at step {step}{on}, and no error is raised{after}",
        "scale the loss with torch.amp.GradScaler, which skips such steps, or compute in bf16",
    ),
    "loss-not-finite": Reason(
        "the loss is NaN or infinite at step {step}{on}, and no error is raised{after}",
        "compute what overflows (a sum, an exponential, a loss) in fp32, or all of it in bf16, whose range is fp32's",
    ),
    "on-some-ranks": Reason(" on {ranks:all rank/ranks}"),
    "to-the-end": Reason("; every loss from then to the end is NaN or infinite"),
    # precision-speed
    "is-fp32-itself": Reason("this is fp32, with which others are compared", "run another variant"),
    "not-timed-beside-fp32": Reason(
        "no steps were timed beside fp32's",
        "time them (--set repeats=9)",
        "time a few steps in either precision by turns, nine times, each with probe.event('timed', repeat=…, loop='variant' "
        "or 'fp32', elapsed_ns=…, steps=…)",
    ),
    "too-few-repeats-beside-fp32": Reason(
        "{repeats:plural repeat is/repeats are} too few to tell a difference from noise",
        "time {enough} repeats or more (--set repeats=9)",
        "time {enough} repeats or more",
    ),
    "slower-than-fp32": Reason(
        "a step takes {ratio:.2f} times as long as in fp32 on this device: casting costs more than this model's products "
        "gain, or the device has no units for this precision",
        "use fp32 here, and measure again where the model or the device is another",
    ),
    "faster-than-fp32": Reason("a step takes {ratio:.2f} times as long as in fp32: {speed:.2f} times as fast"),
    "as-fast-as-fp32": Reason("a step takes as long as in fp32, within the noise and {within:.0%}"),
    "speed-hidden-by-noise": Reason(
        "a step takes {low:.2f} to {high:.2f} times as long as in fp32 from one repeat to the next: noise hides any "
        "difference",
        "stop what else runs on this machine, and time more steps (--set timed_steps=100)",
        "stop what else runs on this machine, and time more steps",
    ),
    # skipped-steps
    "scaler-not-asked": Reason("no gradient scaler was asked for a step", "train with a GradScaler, and record its scale"),
    "scale-never-falls": Reason(
        "every one of {steps} steps is skipped, and the scale stays at {scale:,.4g}: nothing brings it down, and the "
        "weights never change",
        "call scaler.update() after each scaler.step(optimizer), and give it no scale of its own; a fixed scale must be "
        "small enough for every gradient",
    ),
    "not-finite-at-any-scale": Reason(
        "every one of {steps} steps is skipped, and the scale has sunk to {scale:.2g}: the loss or a gradient is infinite "
        "or NaN whatever the scale, and the weights never change",
        "find what is not finite in the forward pass (torch.autograd.set_detect_anomaly), and repair that",
    ),
    "scale-still-falls": Reason(
        "every one of {steps} steps is skipped, but the scale ({scale:.3g}) is still coming down",
        "run more steps, or begin with a smaller scale",
    ),
    "skips-beyond-the-search": Reason(
        "{skipped:.0%} of the steps after the first search are skipped, beyond one for each doubling of the scale: "
        "gradients overflow or are NaN in some batches, and those batches teach nothing",
        "find the batches whose loss or gradients are not finite; clip after unscale_, lower the learning rate, or compute "
        "the part that overflows in fp32 or bf16",
    ),
    "skips-only-in-the-search": Reason("steps are skipped only while the scaler looks for its scale"),
    "no-step-skipped": Reason("no step is skipped"),
    "too-few-skips": Reason(
        "{skipped} of {steps} steps are skipped beyond one for each doubling of the scale: too few to tell chance from a "
        "fault",
        "run more steps",
    ),
    # stale-casts
    "no-pass-checked-after-an-update": Reason(
        "no forward pass was checked after an update, and no batch came twice in a row with weights moved between",
        "train a few steps on one and the same batch (--set fixed_batch=true)",
        "train a few steps on one and the same batch, read through probe.batches(loader)",
    ),
    "casts-of-older-weights": Reason(
        "after an update, with autocast still open, a forward pass computes with casts of older weights",
        "open torch.autocast around each forward pass, not around the loop; leaving it drops the kept casts",
    ),
    "casts-of-older-weights-and-loss-stands-still": Reason(
        "after an update, with autocast still open, a forward pass computes with casts of older weights: on one batch the "
        "loss is the same number {times} times, although the weights move",
        "open torch.autocast around each forward pass, not around the loop; leaving it drops the kept casts",
    ),
    "loss-stands-still-while-weights-move": Reason(
        "on one batch the loss stays the very same number, although the weights move: the forward pass does not see them",
        "open torch.autocast around each forward pass, not around the loop; leaving it drops the kept casts",
    ),
    "loss-stands-still": Reason(
        "on one batch the loss stays the very same number through all updates: the forward pass does not see them, or they "
        "are too small to change a weight",
        "see whether a weight changes in a step: if it does, open torch.autocast around each forward pass, not around the "
        "loop, since leaving it drops the kept casts; if not, keep the weights in fp32, or raise the learning rate",
    ),
    "passes-see-the-last-update": Reason("forward passes compute with the weights of the last update"),
    "too-few-batches-that-came-again": Reason(
        "the loss stood still on a batch that came again {equal} of {pairs} times: too few to tell an accident of rounding "
        "from weights that are not seen",
        "train {enough} steps or more on one batch, with a larger learning rate",
    ),
    # mixed-precision-setup
    "use-of-precision-not-watched": Reason(
        "nobody watched what the program uses of mixed precision", "run the script under `labkit doctor`, which watches it"
    ),
    "no-mixed-precision-used": Reason(
        "neither autocast nor a scaler is used", "run it as you train, with autocast where you use it"
    ),
    "mixed-precision-as-it-should-be": Reason("fp16 is used with a scaler, other formats without, and autocast is closed"),
    "autocast-stays-open": Reason(
        "autocast was open at {updates:plural update/updates} of fp32 weights: it keeps the casts that it made of them, and "
        "forward passes may go on with the old ones",
        "open autocast around the forward pass and the loss of each step, and close it before backward and optimizer.step()",
    ),
    "stepped-without-the-scaler": Reason(
        "{times:plural step/steps} of an optimizer were made on gradients that still carry the scaler's scale: they are "
        "thousands of times too large, and overflows are not skipped",
        "call scaler.step(optimizer) in the place of optimizer.step(), and scaler.update() after it",
    ),
    "weights-cast-in-the-loop": Reason(
        "the weights that are trained are cast to 16 bits {times:plural time/times} in {updates:plural update/updates}: "
        "each cast rounds away what small updates had added",
        "leave the weights in fp32 and open autocast around the forward pass; cast a copy where one in 16 bits is needed",
    ),
    "backward-in-autocast": Reason(
        "{times:plural backward pass/backward passes} ran with autocast open: gradients are computed in the formats that "
        "the forward pass used anyway, and operations of your own run in 16 bits without your asking",
        "close autocast before backward(): only the forward pass and the loss belong into it",
    ),
    "fp16-without-a-scaler": Reason(
        "the model computes in fp16 without a gradient scaler: gradients below 6e-8 become 0",
        "scale the loss: scaler = torch.amp.GradScaler(); scaler.scale(loss).backward(); scaler.step(optimizer); "
        "scaler.update(). Or use bf16, which needs none",
    ),
    "bf16-with-a-scaler": Reason(
        "a gradient scaler is used with bf16, which has the exponents of fp32: it gains nothing, costs a check of all "
        "gradients in each step, and may skip steps",
        "leave the scaler out with bf16: GradScaler(enabled=False), or loss.backward() and optimizer.step()",
    ),
    "scaler-without-fp16": Reason(
        "a gradient scaler is used, and nothing computes in fp16: autocast was never opened",
        "open autocast around the forward pass, or leave the scaler out",
    ),
}
