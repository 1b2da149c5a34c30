"""What the questions about updates say."""

from __future__ import annotations

from ..catalogue import Reason

REASONS = {
    # empty-updates
    "updates-not-looked-at": Reason(
        "nobody looked at the weights before and after updates", "run the script under `labkit doctor`, which looks at them"
    ),
    "no-optimizer-stepped": Reason(
        "no optimizer of torch made a step", "run a script that trains, for a few updates at least"
    ),
    "too-few-updates-looked-at": Reason(
        "{updates:plural update/updates} of an optimizer cannot show what updates do", "run 10 updates or more"
    ),
    "optimizer-may-hold-others": Reason(
        "an optimizer gets no gradients, and parameters with gradients are held by none",
        "make the optimizer from the parameters of the model that is trained",
    ),
    "learning-rate-is-zero": Reason(
        "the learning rate is 0 in all {updates:plural update/updates}: no weight changes",
        "look at the schedule and at the arguments of the optimizer: what it gets as lr is 0",
    ),
    "no-gradient-reaches-the-optimizer": Reason(
        "no parameter of the optimizer gets a gradient in {updates:plural update/updates}: the loss does not depend on "
        "them, and no weight changes",
        "let the loss come from the model unbroken: no .item(), .detach(), torch.tensor(loss) or torch.no_grad() on "
        "the way; give the optimizer the parameters of this model, with requires_grad=True",
    ),
    "gradients-all-zero": Reason(
        "all gradients are 0 in {updates:plural update/updates}: no weight changes",
        "look at what the loss is multiplied by, or masked with, and whether the last layer's output is constant",
    ),
    "updates-put-back": Reason(
        "the weights are put back to what they were after each of {updates:plural update/updates} that were looked at",
        "find what copies weights back into the model between updates (load_state_dict, copy_, an average that is swapped "
        "in), and do it on a copy of the model",
    ),
    "updates-round-away-in-16-bits": Reason(
        "{share:.0%} of the weights with a gradient do not move: they have 16 bits, and at a learning rate of {rate:.2g} "
        "their updates are less than half a step of the format",
        "keep the weights in fp32 and compute under autocast, or use an optimizer that keeps fp32 copies of the weights",
    ),
    "updates-too-small-to-count": Reason(
        "{share:.0%} of the weights with a gradient do not move: at a learning rate of {rate:.2g} their updates round away "
        "even in 32 bits",
        "look at the learning rate, and at whether the loss or the gradients are divided too often",
    ),
    "some-updates-round-away": Reason(
        "{share:.0%} of the weights with a gradient do not move: they have 16 bits, and their updates may be too small",
        "run it for longer, and with weights kept in fp32 beside, and compare the losses",
    ),
    "optimizer-may-step-later": Reason(
        "{passes:plural backward pass was/backward passes were} made, and no optimizer made a step so far",
        "run it until it makes an update",
    ),
    "optimizer-never-stepped": Reason(
        "{passes:plural backward pass/backward passes}, an optimizer, and not one step of it: no weight changes",
        "call optimizer.step() after the backward pass",
    ),
    "updates-change-weights": Reason("updates change the weights"),
}
