"""What the questions about sharding say."""

from __future__ import annotations

from ..catalogue import Reason

REASONS = {
    # optimizer-before-sharding
    "optimizers-parameters-not-noted": Reason(
        "nothing was noted of which parameters the optimizer holds",
        "note an event optimizer_knows with known, parameters and orphans, once both are made",
    ),
    "optimizer-holds-the-models-parameters": Reason("every parameter that the optimizer holds is one of the model's"),
    "optimizer-holds-others-but-weights-move": Reason(
        "the optimizer holds {orphans:plural parameter/parameters} that the model does not have, and weights move all the "
        "same: another part of the model may be frozen or removed on purpose",
        "make the optimizer from model.parameters() of the finished model, and look again",
    ),
    "optimizer-holds-what-nothing-uses": Reason(
        "the optimizer knows {known} of the model's {parameters:plural parameter/parameters} and holds {orphans} that "
        "nothing uses: its steps change nothing that the model computes with, and the old whole weights stay in memory",
        "make the optimizer after fully_shard, from the sharded model's parameters()",
    ),
    # per-rank-norm
    "ranks-train-apart": Reason(
        "local_steps says that ranks train apart for {steps:plural step/steps}, each with a norm of its own"
    ),
    "no-norms-of-one-step": Reason(
        "no two ranks recorded a gradient norm for the same step",
        "record what clip_grad_norm_ returns, on every rank, as the scalar grad_norm",
    ),
    "no-finite-norm-on-every-rank": Reason("no step has a finite norm on every rank", "first find out what is not finite"),
    "each-rank-has-a-norm-of-its-own": Reason(
        "ranks find different norms for one gradient: each sees its own shard alone, or its own gradient before those of "
        "all ranks are averaged, scales it by a factor of its own, and the clipped gradient points elsewhere",
        "use the wrapper's own clip_grad_norm_ (model.clip_grad_norm_ under FSDP1), or FSDP2, whose DTensors know all "
        "shards; under DDP clip after the backward pass that reduces. Where ranks train apart for some steps on purpose "
        "(local SGD), this is expected: say so with probe.declare(local_steps=...)",
    ),
    "ranks-hold-weights-of-their-own": Reason(
        "each rank applies a gradient of its own, and clips it by its own norm: their weights are kept together otherwise, "
        "or not at all, which replicas-differ says"
    ),
    "norms-of-different-parts": Reason(
        "ranks hold different parts of a model, and each clips by the norm of its own: the whole gradient then points "
        "elsewhere",
        "sum the squares of all parts' norms over the ranks before you clip",
    ),
    "each-rank-scales-by-its-own-factor": Reason(
        "each rank scales its shards of the gradients by a factor of its own between the backward pass and the update: the "
        "norm that it clips by is that of its shards alone, and the clipped gradient points elsewhere",
        "use torch.nn.utils.clip_grad_norm_ under fully_shard, model.clip_grad_norm_ under FullyShardedDataParallel; by "
        "hand, all_reduce the sum of squares before you divide",
    ),
    "one-norm-on-all-ranks": Reason("all ranks find the same norm in every step"),
    "norms-differ-in-few-steps": Reason(
        "norms differ by up to {spread:.1e} between ranks: more than the order of sums explains, and not in most steps",
        "compare the norms before and after the gradients are reduced",
    ),
    # unequal-init
    "initial-weights-not-recorded": Reason(
        "no hash of the initial weights was recorded on two ranks or more",
        "record digest('initial_weights', model.parameters()) on every rank, before the model is wrapped",
    ),
    "ranks-begin-with-equal-weights": Reason("all ranks begin with the same weights, to the bit"),
    "wrapped-weights-not-recorded": Reason(
        "ranks begin with {different} different sets of weights; whether wrapping made them equal is not known",
        "record digest('wrapped_weights', the whole weights) after wrapping too",
    ),
    "wrapping-made-weights-equal": Reason(
        "ranks begin with {different} different sets of weights, and wrapping made them all equal to one of these"
    ),
    "shards-were-written-afterwards": Reason(
        "ranks gave {different} different sets of weights to the wrapper, and the shards were written anew before the first "
        "pass: loaded, or initialised"
    ),
    "shards-of-different-weights": Reason(
        "ranks began with {different} different sets of weights, and the model that trains is none of them: its shards come "
        "from different initialisations, whose statistics nobody chose",
        "seed all ranks alike before the model is built (and apart after it, for dropout), or broadcast the first rank's "
        "weights; fully_shard does not",
    ),
    # wrong-stage
    "strategies-are-compared": Reason("this record compares strategies, none is under study", "read its table, or run one"),
    "no-strategy-declared": Reason(
        "no strategy was declared",
        "declare strategy, num_parameters and room_bytes, and count a step (lab zero-stages)",
    ),
    "one-rank-shares-nothing": Reason(
        "with one rank there is nobody to share with, and nothing is sent", "run it on several ranks"
    ),
    "memory-and-collectives-not-counted": Reason(
        "no step's memory and collectives were counted", "count a step with CollectiveCounter and bytes_alive"
    ),
    "room-not-declared": Reason("how much memory a device has was not declared", "declare room_bytes"),
    "lower-stage-holds-less": Reason(
        "{own} holds more than the device has, and {lower}, of stage {stage} only, fits: what a higher stage keeps "
        "besides its shards (weights that stay gathered, whole copies) is more than it saves on this model",
        "use {lower}, or let {own} keep less gathered (DeepSpeed: stage3_max_live_parameters and "
        "stage3_param_persistence_threshold; hsdp: fewer replicas)",
    ),
    "stage-itself-does-not-fit": Reason(
        "{own} itself does not fit, so cost is not the question: use a higher stage, or more ranks"
    ),
    "nothing-that-fits-sends-less": Reason("of the strategies that were run with {own}, none that fits sends less"),
    "no-lower-stage-fits": Reason("by the paper's formula no lower stage than {stage} fits"),
    "lower-stage-was-not-run": Reason(
        "by the paper's formula stage {stage} would fit, but the record has no run of it to compare with",
        "run a strategy of stage {stage} on the same ranks and link",
    ),
    "too-few-steps-beside-a-cheaper-stage": Reason(
        "{cheaper} fits and sends less, but too few steps were timed", "run more steps"
    ),
    "cheaper-stage-is-faster": Reason(
        "{own} sends {more:.2f} times what {cheaper} sends, and {cheaper} fits into the same memory: the difference is "
        "weights that are gathered again, and waited for",
        "use {cheaper}; keep the higher stage for the day the lower one does not fit",
    ),
    "without-resharding-is-faster": Reason(
        "{own} sends {more:.2f} times what {cheaper} sends, and {cheaper} fits into the same memory: the difference is "
        "weights that are gathered again, and waited for",
        "use {cheaper} (fully_shard with reshard_after_forward=False); keep the higher stage for the day the lower one does "
        "not fit",
    ),
    "more-sent-in-no-more-time": Reason(
        "{own} sends {more:.2f} times what {cheaper} sends, and its steps take no longer for it"
    ),
    "cost-hidden-by-noise": Reason(
        "{own} sends {more:.2f} times what {cheaper} sends, but the times of their steps overlap: noise hides the cost",
        "stop what else runs here, run more steps (--set steps=40), or set a slower link (--link 50mbit)",
        "stop what else runs there, run more steps, or measure on a slower link",
    ),
}
