"""What the questions about the weight of ranks, micro-batches and targets say."""

from __future__ import annotations

from ..catalogue import Reason

_UNDER_DOCTOR = "run the script under `labkit doctor`, which looks at them"

REASONS = {
    # gradient-average
    "no-gradients-compared": Reason("nobody compared what backward passes gave with what optimizers took", _UNDER_DOCTOR),
    "gradients-are-parts": Reason(
        "parameters are parts of larger ones, whose gradients a wrapper reduces before they can be seen here",
        "compare the norm of the gradient on 1 rank and on 2 with the same global batch: they must be equal",
    ),
    "reduction-not-waited-for": Reason(
        "in {updates:plural update/updates} the optimizer steps while reductions of its gradients are still under way: what "
        "it takes may be this rank's gradient, the sum, or a mixture",
        "keep what all_reduce(…, async_op=True) returns, and call wait() on each before optimizer.step()",
    ),
    "gradients-lost-in-16-bits": Reason(
        "gradients of {passes} micro-batches are added up in 16 bits, and {share:.0%} of their sum is lost: a small "
        "gradient that is added to a large sum changes nothing",
        "keep weights and gradients in fp32 and compute under autocast; or add up into fp32 buffers and cast once, before "
        "the update",
    ),
    "some-gradients-stay-on-their-rank": Reason(
        "some gradients are averaged over the ranks, and those of {names} are not, which is right for parameters that each "
        "rank has of its own, such as experts",
        "if every rank is to hold the same of them, reduce their gradients too; replicas-differ compares the weights",
    ),
    "reduced-before-the-last-pass": Reason(
        "gradients are reduced before the last of {passes} backward passes: its gradient stays on its own rank, and ranks "
        "drift apart",
        "reduce once, after the last backward pass of the update and before the optimizer's step",
    ),
    "passes-weigh-unequally": Reason(
        "the last of {passes} backward passes weighs {factor:.3g} times as much as those before it: what is reduced once "
        "more or divided once more with each pass does that",
        "reduce and scale the gradients once, after the last backward pass of the update",
    ),
    "gradients-stay-on-their-rank": Reason(
        "each rank applies its own gradient, and nothing averages them",
        "nothing, if ranks are to train apart; else see replicas-differ",
    ),
    "gradients-changed-by-the-script": Reason(
        "the gradients that the optimizer takes are no multiple of what the backward passes gave: the script, a hook or a "
        "communication hook changes them",
        "nothing, if that is on purpose; else compare the gradient of a step on 1 rank and on 2 with the same global batch",
    ),
    "gradients-summed-and-loss-not-known": Reason(
        "gradients are added up over {ranks} ranks and not divided, and the form of the loss is not known: it is right for "
        "a sum that is divided by the targets of all ranks, and wrong for a mean",
        "compare the norm of the gradient on 1 rank and on {ranks} with the same global batch: they must be equal",
    ),
    "gradients-summed": Reason(
        "gradients of mean losses are added up over {ranks} ranks and not divided: each update is {ranks} times as large as "
        "on one rank with the same data, and the result depends on the number of ranks. Adam hides it in the loss; clipping "
        "and logged norms do not",
        "divide by the number of ranks: param.grad /= dist.get_world_size() after the all_reduce, or use ReduceOp.AVG",
    ),
    "gradients-divided-twice": Reason(
        "gradients that are the mean over {ranks} ranks are divided by {ranks} once more: each update is {ranks} times too "
        "small. Adam hides it in the loss; clipping and logged norms do not",
        "leave the division out: DistributedDataParallel and ReduceOp.AVG divide by the number of ranks already",
    ),
    "loss-divided-by-the-ranks": Reason(
        "the loss is divided by the number of ranks ({ranks}) before backward, and the gradients are averaged over the "
        "ranks all the same: each update is {ranks} times too small. Adam hides it in the loss; clipping and logged "
        "norms do not",
        "do not divide the loss by the number of ranks where DistributedDataParallel averages the gradients",
    ),
    "global-count-averaged-again": Reason(
        "the loss is a sum divided by the targets of all {ranks} ranks together, and the gradients are averaged over the "
        "ranks once more: each update is {ranks} times too small. Adam hides it in the loss; clipping and logged norms do "
        "not",
        "multiply the loss by the number of ranks: loss = loss_sum * world_size / targets_of_all_ranks",
    ),
    "sums-look-divided-twice": Reason(
        "the loss is a sum divided by what is the number of targets of all {ranks} ranks, and the gradients are averaged "
        "over the ranks once more; where the batches are equal in size, half of each loss on purpose looks alike",
        "run on more ranks with the same global batch: if the norm of the gradient falls, multiply the loss by their number",
    ),
    "gradients-scaled-by-the-script": Reason(
        "the gradients are the mean over the ranks of what every pass gave, times a number that the script gives them"
    ),
    "gradients-are-the-mean": Reason("each update takes the mean over the ranks of what every backward pass gave"),
    # accumulated-loss, loss-weighting
    "no-losses-looked-at": Reason("nobody looked at the losses that backward is called on", _UNDER_DOCTOR),
    "too-few-windows": Reason(
        "{updates:plural update/updates} cannot show how micro-batches are weighed", "run 10 updates or more"
    ),
    "one-pass-an-update": Reason(
        "each update is of one backward pass", "nothing: there is nothing to divide; this asks about gradient accumulation"
    ),
    "passes-are-no-micro-batches": Reason(
        "the backward passes of an update are called on different lines, or on losses whose form is not known",
        "nothing, if they are different losses; else compare an update of K micro-batches with one of the whole batch",
    ),
    "loss-of-micro-batches-not-known": Reason(
        "what the script does with gradients between the passes and the update is not known",
        "compare the norm of the gradient of K micro-batches with that of the whole batch: they must be equal",
    ),
    "passes-may-be-losses-of-one-batch": Reason(
        "the losses of {passes} backward passes are added up and not divided; they may be different losses of one batch, "
        "which is right",
        "if they are micro-batches, divide each loss by their number",
    ),
    "accumulation-not-divided": Reason(
        "the losses of {passes} micro-batches are means, and none is divided by {passes}: each update is {passes} times as "
        "large as that of the whole batch. Adam takes nearly the same steps; clipping acts {passes} times sooner, and SGD "
        "has {passes} times its learning rate",
        "divide each micro-batch's loss by the number of micro-batches in the update: (loss / K).backward()",
    ),
    "loss-divided-twice": Reason(
        "the loss of {passes} micro-batches is divided by {passes} twice: each update is {passes} times too small",
        "divide once: leave the division to the framework (Accelerate, Lightning, Trainer and DeepSpeed divide), or do it "
        "in the loop and not there",
    ),
    "last-window-too-light": Reason(
        "the last update of an epoch is of {passes} micro-batches and each loss is divided by {of}: it is {passes}/{of} of "
        "what it should be",
        "divide by the number of micro-batches that are really in the update; Accelerate and Lightning do not, and the "
        "effect is small where updates are many",
    ),
    "micro-batches-weighted-by-the-script": Reason("the script gives its micro-batches weights of its own"),
    "micro-batches-are-averaged": Reason("each update is the mean of its micro-batches"),
    "one-micro-batch-an-update": Reason(
        "one micro-batch makes an update, with nothing to be weighed against", "run with 2 ranks or more"
    ),
    "targets-not-known": Reason(
        "how many targets a loss is taken over cannot be told from its form",
        "use torch's own loss functions, or compare the loss of K micro-batches with that of the whole batch by hand",
    ),
    "targets-weigh-alike": Reason("each target weighs the same in an update, whichever micro-batch or rank it is in"),
    "targets-weigh-somewhat-unequally": Reason(
        "means over {fewest:,} and over {most:,} targets are averaged as if they were alike, which puts {share:.0%} of an "
        "update's weight on other targets than one mean over all would",
        "add up the losses of all targets and divide by their number in all micro-batches and ranks, if each is to weigh "
        "the same",
    ),
    "unequal-micro-batches-averaged": Reason(
        "the loss of each micro-batch is a mean over its own targets, from {fewest:,} to {most:,} of them, and these means "
        "are averaged: {share:.0%} of an update's weight lies on other targets than in one mean over all, and a target in a "
        "small micro-batch weighs more",
        "take reduction='sum' and divide by the number of targets in all micro-batches and ranks of the update; with DDP "
        "multiply by the number of ranks, since it averages",
    ),
    "unequal-ranks-averaged": Reason(
        "the loss of each rank is a mean over its own targets, from {fewest:,} to {most:,} of them, and the gradients are "
        "averaged over the ranks: {share:.0%} of an update's weight lies on other targets than in one mean over all",
        "take reduction='sum', all-reduce the number of targets, and use loss = loss_sum * world_size / "
        "targets_of_all_ranks with DDP, which averages",
    ),
    # gathered-features
    "nothing-gathered-for-a-gradient": Reason(
        "no features with a gradient are gathered from other ranks",
        "nothing, unless the loss compares features of all ranks",
    ),
    "gathered-and-not-seen-in-the-loss": Reason(
        "features with a gradient are gathered by all_gather, which gives none back, and whether the loss is computed from "
        "what comes back cannot be seen",
        "if it is, gather with torch.distributed.nn.functional.all_gather; if not, gather features.detach()",
    ),
    "gathered-too-seldom": Reason(
        "features were gathered for a loss {times:plural time/times}, too seldom to tell", "run 4 updates or more"
    ),
    "gathered-without-gradient": Reason(
        "the loss is computed from features of all ranks, and all_gather gives them back without a gradient, this rank's "
        "own among them: a part of the gradient is missing, and the loss falls all the same",
        "gather with torch.distributed.nn.functional.all_gather, which passes gradients back to the ranks that gave the "
        "features; or gather features.detach() and put this rank's own in their place, if the others are to have none",
    ),
    "own-features-alone-have-a-gradient": Reason(
        "the loss is computed from features of all ranks, of which this rank's own alone have a gradient: what other ranks' "
        "losses would give to them is missing",
        "gather with torch.distributed.nn.functional.all_gather, unless features of others are to have no gradient",
    ),
    "own-features-alone-of-one-loss": Reason(
        "every rank computes one and the same loss from features of all, of which its own alone have a gradient, and the "
        "gradients are averaged over {ranks} ranks: each update is {ranks} times too small",
        "multiply the loss by the number of ranks, or gather with torch.distributed.nn.functional.all_gather",
    ),
    "own-features-times-the-ranks": Reason(
        "each rank gives the gradient of its own features, and the loss is multiplied for the average over the ranks"
    ),
}
