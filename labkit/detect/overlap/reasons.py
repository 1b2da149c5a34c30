"""What the questions about the overlap of communication and computing say."""

from __future__ import annotations

from ..catalogue import Reason

REASONS = {
    "ranks-reduce-in-groups": Reason(
        "gradients are reduced in groups of some ranks, and the groups do not wait for each other", "run one group alone"
    ),
    "several-ddp-modules": Reason(
        "{modules} DDP modules are trained, and each reduces its own gradients: they are not told apart",
        "watch one of them alone",
    ),
    # exposed-communication
    "one-rank-sends-to-nobody": Reason("with one rank there is nobody to send to", "run with 2 ranks or more"),
    "several-bucket-sizes-were-tried": Reason(
        "the run tried several bucket sizes; each has an answer of its own",
        "look at the figure bucket-sweep, or run one size: --variant fixed --set bucket_mb=1",
        "look at the figure bucket-sweep, or run one size",
    ),
    "computing-not-told-from-waiting": Reason(
        "collectives lie within what the program calls computing, and nobody saw when its own computing ended: "
        "loss.backward() of a DDP module ends when its reductions have",
        "watch the DDP module with watch_ddp(ddp, probe), which tells computing from waiting",
    ),
    "no-collective-timed": Reason(
        "no collective was timed",
        "watch the DDP module with watch_ddp(ddp, probe) before its first pass, and register no communication hook before "
        "that",
    ),
    "no-backward-pass-timed": Reason(
        "no backward pass was timed, and only that could hide a reduction",
        "watch the DDP module with watch_ddp(ddp, probe), which tells computing from waiting",
    ),
    "communication-too-short-to-notice": Reason(
        "communication is {share:.1%} of the step: on this link it makes hardly any difference whether it is hidden",
        "measure on the link that you will train on, or set a slower one (--hosts 2 --link 400mbit)",
        "measure on the link that you will train on",
    ),
    "too-few-steps-to-see-them-differ": Reason(
        "{steps:plural measured step/measured steps} cannot show how much steps differ",
        "run {enough} steps or more (--steps {enough})",
        "run {enough} steps or more",
    ),
    "communication-is-hidden": Reason(
        "{hidden:.0%} of the communication that the backward pass can hide is hidden; {saved:.0%} of the step is left to "
        "gain"
    ),
    "noise-hides-what-is-hidden": Reason(
        "from step to step {low:.0%} to {high:.0%} of what could be hidden is hidden, and {least:.0%} to {most:.0%} of the "
        "step is left to gain: noise decides",
        "run more steps (--steps 20) on a machine that does nothing else",
        "run more steps on a machine that does nothing else",
    ),
    "reduced-after-the-backward-pass": Reason(
        "ranks wait {exposed_ms:.0f} ms of each step for communication alone: gradients are reduced after the backward "
        "pass, when nothing is left to compute meanwhile",
        "let DistributedDataParallel reduce during the backward pass, in buckets, instead of a loop after it",
    ),
    "one-bucket-holds-all": Reason(
        "ranks wait {exposed_ms:.0f} ms of each step for communication alone: one bucket holds all {gradient_bytes:,} bytes "
        "of gradients, and is full when the backward pass is over",
        "{remedy}",
    ),
    "large-bucket-comes-late": Reason(
        "ranks wait {exposed_ms:.0f} ms of each step for communication alone, and {hidden:.0%} of what could be hidden "
        "is hidden: the largest of {buckets} buckets holds {largest:.0%} of the bytes",
        "{remedy}",
    ),
    "compute-more-in-a-step": Reason(
        "smaller buckets do not help when gradients are so few bytes, because each costs a latency: let a step compute "
        "more (a larger batch, or several micro-batches with no_sync)"
    ),
    "try-other-buckets": Reason(
        "try half and twice the bucket size (bucket_cap_mb): ranks wait for the whole last bucket, and each bucket "
        "costs a latency; if neither helps, send less (several micro-batches with no_sync)"
    ),
    "make-buckets-smaller": Reason(
        "give DDP smaller buckets: bucket_cap_mb={start_mib:.2g} (MiB) is a start; then try half and twice as much, since "
        "each bucket costs a latency"
    ),
    # late-rank
    "no-arrival-seen": Reason(
        "no bucket's arrival was seen on all ranks", "watch the DDP module with watch_ddp(ddp, probe) on every rank"
    ),
    "too-few-reductions": Reason(
        "after {reductions:plural reduction/reductions}, who came last may still be chance", "run {enough} steps or more"
    ),
    "late-as-threads-outnumber-cores": Reason(
        "more threads than cores wanted to run, and that alone makes ranks this late",
        "run more steps, on machines that do nothing else",
    ),
    "no-rank-is-late": Reason(
        "it is not always the same rank that comes last, or it is only a little later than the others"
    ),
    "rank-late-perhaps-by-chance": Reason(
        "rank {rank} is late by {by_ms:.0f} ms in {late} of {reductions:plural reduction/reductions}, but that is too few, "
        "or the time varies too much, to be more than chance or another program on its cores",
        "run more steps, on machines that do nothing else",
    ),
    "rank-late-before-its-backward-pass": Reason(
        "rank {rank}{others} comes to the collectives {by_ms:.0f} ms later than the others, who wait{when}; it loses the "
        "time before its backward pass, in its forward pass or its input",
        "look at what rank {rank} does that others do not: its data, its host, what else runs there; its own step time will "
        "not show it",
    ),
    "rank-late-in-its-backward-pass": Reason(
        "rank {rank}{others} comes to the collectives {by_ms:.0f} ms later than the others, who wait{when}; it loses the "
        "time in its backward pass",
        "look at what rank {rank} does that others do not: its data, its host, what else runs there; its own step time will "
        "not show it",
    ),
    "and-other-late-ranks": Reason(" (and {ranks:all rank/ranks})"),
    "late-from-a-step-on": Reason(", from step {step} on"),
    "late-in-some-reductions": Reason(", in {late} of {reductions:plural reduction/reductions}"),
    # misplaced-no-sync and missing-no-sync
    "one-reduction-a-step": Reason(
        "{passes:plural micro-batch/micro-batches}, {reduced:plural reduction/reductions} a step"
    ),
    "no-pass-in-no-sync": Reason("no pass ran in no_sync"),
    "no-sync-leaves-the-forward-pass-out": Reason(
        "{passes:plural backward pass/backward passes} ran in no_sync and reduced all the same: DDP had decided in the "
        "forward pass, which ran outside",
        "put the forward pass into `with ddp.no_sync():` too",
    ),
    "never-reduced-yet-weights-are-equal": Reason(
        "in {steps:plural step/steps} DDP reduced nothing, yet all ranks end with the same weights: something else reduces "
        "them"
    ),
    "never-reduced-and-weights-not-known": Reason(
        "in {steps:plural step/steps} DDP reduced nothing, though not every pass ran in no_sync, and no hash says whether "
        "the ranks' weights are equal",
        "watch the whole run, and record the weights on every rank: probe.digest('weights', model.parameters())",
    ),
    "never-reduced-and-weights-differ": Reason(
        "in {steps:plural step/steps} DDP reduced nothing, and the ranks end with different weights: every micro-batch ran "
        "in no_sync",
        "leave the last micro-batch of each step outside of `with ddp.no_sync():`, forward and backward. Where weights are "
        "averaged now and then instead (local SGD), record their hash after the last time: "
        "probe.digest('weights', model.parameters())",
    ),
    "never-reduced-and-ranks-talk": Reason(
        "in {steps:plural step/steps} DDP reduced nothing, and collectives were called beside it: weights may be averaged "
        "now and then (local SGD)",
        "look at the question whether all ranks hold the same weights, in a run that ends just after they are averaged",
    ),
    "every-pass-in-no-sync": Reason(
        "in {steps:plural step/steps} DDP reduced nothing, so each rank trains a model of its own: every micro-batch ran in "
        "no_sync",
        "leave the last micro-batch of each step outside of `with ddp.no_sync():`, forward and backward. Where weights are "
        "averaged now and then instead (local SGD), record their hash after the last time: "
        "probe.digest('weights', model.parameters())",
    ),
    "last-pass-not-reduced-and-weights-not-known": Reason(
        "in {steps:plural step/steps} of the optimizer the last backward pass did not reduce: it ran in no_sync, and no "
        "hash says whether the ranks' weights are equal",
        "record the weights on every rank: probe.digest('weights', model.parameters())",
    ),
    "last-pass-not-reduced": Reason(
        "in {steps:plural step/steps} of the optimizer the last backward pass did not reduce: it ran in no_sync, its "
        "gradients stay on their rank, and the ranks end with different weights",
        "leave the last micro-batch of each step outside of `with ddp.no_sync():`, and put the others in, forward and "
        "backward; the last batches of an epoch too",
    ),
    "passes-are-cleared-between": Reason(
        "gradients are cleared between the backward passes of a step: nothing is accumulated",
        "a pass that no update uses, as an attack on the inputs, needs no reduction: run it in model.no_sync()",
    ),
    "nothing-is-accumulated": Reason("a step has one backward pass: nothing is accumulated"),
    "no-micro-batch-reduces": Reason("no micro-batch reduces its gradients: see misplaced-no-sync"),
    "no-sync-around-the-wrong-part": Reason("no_sync is there, but around the wrong part: misplaced-no-sync says where"),
    "micro-batches-reduce": Reason(
        "{reduced:g} of {passes:g} micro-batches reduce their gradients, and one reduction would do",
        "put forward and backward of all micro-batches but the last into `with ddp.no_sync():`",
    ),
    "micro-batches-reduce-all-bytes": Reason(
        "{reduced:g} of {passes:g} micro-batches reduce their gradients of {gradient_bytes:,} bytes each, and one reduction "
        "would do",
        "put forward and backward of all micro-batches but the last into `with ddp.no_sync():`",
    ),
    # needless-find-unused
    "find-unused-not-set": Reason("find_unused_parameters is not set"),
    "static-graph-looks-once": Reason("with static_graph DDP looks in the first step only"),
    "some-parameters-are-unused": Reason("parameters are unused in {unused} of {passes:plural pass/passes}: it is needed"),
    "too-few-passes": Reason(
        "every parameter was used in {passes:plural pass/passes}; a later one might still leave some out",
        "watch {enough} passes or more",
    ),
    "every-parameter-is-used": Reason(
        "find_unused_parameters is set, and in {passes:plural pass/passes} every parameter was used: each step walks the "
        "graph and reduces a list of what was used, for nothing",
        "leave find_unused_parameters out; should a later step skip a layer after all, DDP says so with an error",
    ),
    "library-looks-for-unused": Reason(
        "every parameter was used in {passes:plural pass/passes}, and the library that wrapped the model looks for unused "
        "ones all the same unless it is told not to",
        "set {setting} and time both; it costs a walk through the graph in each step",
    ),
    # per-parameter-reduction
    "sweep-tries-one-bucket-a-parameter": Reason("the run tried several bucket sizes, one a parameter among them"),
    "no-bucket-seen": Reason("no bucket was seen", "watch the DDP module with watch_ddp(ddp, probe)"),
    "few-or-large-collectives": Reason(
        "{collectives:plural collective reduces/collectives reduce} {parameters:plural parameter/parameters}"
    ),
    "one-collective-a-parameter": Reason(
        "{collectives} collectives reduce {parameters} parameters, one each, half of them of {median_bytes:,} bytes or "
        "less: each costs a latency, however small",
        "leave bucket_cap_mb at several parameters' size, 1 MiB or more",
    ),
    "one-collective-a-parameter-by-hand": Reason(
        "{collectives} collectives reduce {parameters} parameters, one each, half of them of {median_bytes:,} bytes or "
        "less: each costs a latency, however small",
        "let DDP reduce in buckets",
    ),
}
