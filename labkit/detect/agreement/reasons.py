"""What the questions about replicas say."""

from __future__ import annotations

from ..catalogue import Reason

REASONS = {
    # replicas-differ
    "one-rank-holds-one-model": Reason("one rank has nobody to differ from", "run with 2 ranks or more"),
    "ranks-never-joined": Reason(
        "{ranks} processes were started as ranks of one training, and none made a process group: each trains alone, on all "
        "that it reads",
        "call torch.distributed.init_process_group() with the variables of your launcher (RANK, WORLD_SIZE; srun sets "
        "SLURM_PROCID and SLURM_NTASKS), and wrap the model in DistributedDataParallel; or start one process",
    ),
    "runs-of-their-own": Reason(
        "{ranks} processes train without a process group, and each with settings of its own: they may be runs side by side, "
        "as in a search, and then their weights cannot be compared",
        "nothing, if each is a run of its own: give the doctor one process; if one model is meant, call "
        "torch.distributed.init_process_group() and wrap the model in DistributedDataParallel",
    ),
    "no-weights-compared": Reason(
        "nobody looked at the weights of each rank while the program trained",
        "run the script under `labkit doctor`, which looks at them",
    ),
    "ranks-hold-parts": Reason(
        "ranks hold different parts of a model, which need not be equal: by name, shape or kind of their parameters",
        "nothing, if the model is split on purpose; else build the same model on every rank",
    ),
    "weights-equal": Reason("all ranks held the same weights, to the bit, after each update that was compared"),
    "weights-meet-again": Reason(
        "ranks hold different weights after update {update}, and the same ones later: averaging weights now and then does "
        "that",
        "nothing, if the script averages weights on purpose (local SGD); else look at what its gradients miss",
    ),
    "types-differ-between-ranks": Reason(
        "a tensor of one name and size is of another number format on another rank: a broadcast or a sum then reads the "
        "bytes of one format as those of the other",
        "cast the model on every rank alike, before the first collective: those that rank 0 loads, and those that start "
        "empty",
    ),
    "weights-differ-by-rounding": Reason(
        "ranks hold weights that differ by rounding from update {update} on: each sums the gradients in an order of its own",
        "let one all_reduce sum the gradients, so that all ranks get the same bits; else the ranks drift apart slowly",
    ),
    "weights-differ-by-choice": Reason(
        "ranks hold different weights after update {update} ({names}), and the script told DDP to leave parameters out, or "
        "how to reduce gradients",
        "nothing, if the script keeps these apart on purpose; else let DDP reduce all of them",
    ),
    "ranks-start-apart": Reason(
        "ranks began with different weights and apply the same gradients: what is between them stays, and each rank trains "
        "a model of its own with gradients of all models' mean ({names})",
        "seed every rank alike before the model is built, or broadcast rank 0's parameters and buffers before the optimizer "
        "is made; DistributedDataParallel does it as it wraps",
    ),
    "changed-after-the-wrap": Reason(
        "DDP made the weights equal as it wrapped the model, and before the first update they differ again ({names}): the "
        "script initialises or loads weights afterwards, in another way on each rank",
        "initialise and load before DistributedDataParallel wraps the model; or load the same file on every rank",
    ),
    "some-gradients-not-reduced": Reason(
        "the script reduces gradients by itself, and leaves some out: after update {update} these weights differ between "
        "ranks, and the others do not ({names})",
        "reduce the gradient of every parameter, on every rank; one that has none there takes part with zeros",
    ),
    "model-outside-the-wrapper": Reason(
        "a model is trained beside the one that is wrapped, and nothing reduces its gradients: after update {update} its "
        "weights differ between ranks ({names})",
        "wrap every module that has weights of its own, losses and heads too, or make them parts of the wrapped module",
    ),
    "part-kept-by-each-rank": Reason(
        "beside what is wrapped, ranks train weights that nothing reduces, and after update {update} these differ "
        "({names}); they may be each rank's own on purpose, as a head for its own data is",
        "if one model is meant, wrap them too; if each rank is to keep its own, nothing is wrong: save them on every rank, "
        "to files of their own",
    ),
    "parameters-outside-the-wrapper": Reason(
        "the model is sharded, and some of its parameters are not ({names}): nothing reduces their gradients, and after "
        "update {update} each rank holds other values of them",
        "call fully_shard on the root module too, after its parts; under tensor parallelism sum the gradients of what is "
        "replicated, and give all ranks of the group the same batch",
    ),
    "loose-tensors-drift": Reason(
        "an optimizer trains tensors that belong to no module, and their values differ between ranks from update {update} "
        "on ({names}): nothing reduces their gradients",
        "make them parameters of the module that is wrapped, and use them in its forward",
    ),
    "settings-differ-between-ranks": Reason(
        "ranks hold different weights after update {update}, and their optimizers have different settings: {settings}",
        "make the optimizer in the same way on every rank",
    ),
    "updates-differ-between-ranks": Reason(
        "ranks made different numbers of updates, and hold different weights from update {update} on: some ranks skip steps "
        "by a test of their own values",
        "let all ranks decide together: all_reduce the flag (MAX) before a step is skipped",
    ),
    "ranks-never-update": Reason(
        "{ranks:all rank/ranks} reduced gradients with the others and never made an update: their weights stay as they "
        "were, and the mean gradient is that of different models",
        "call optimizer.step() on every rank: DDP averages gradients, and each rank applies them",
    ),
    "state-differs-between-ranks": Reason(
        "all ranks apply the same gradients, and the states of their optimizers differ: after update {update} so do the "
        "weights",
        "load the optimizer's state on every rank, and reset it on none alone",
    ),
    "gradients-changed-after-ddp": Reason(
        "DDP reduced the gradients of every update, and ranks apply different ones all the same ({names}): each rank "
        "changes them after the backward pass, or a pass that goes around DDP adds to them",
        "change gradients in the same way on all ranks (noise from one seed, factors of all ranks' values), and let every "
        "pass go through the wrapped model, in one backward",
    ),
    "some-weights-drift-under-ddp": Reason(
        "DDP reduced gradients in every update, and after update {update} some weights differ between ranks ({names}): "
        "they are changed outside the optimizer on one rank only, or DDP does not know them",
        "put parameters into the module before DDP wraps it, and change weights on all ranks alike",
    ),
    "weights-drift-with-equal-gradients": Reason(
        "all ranks apply the same gradients, and after update {update} hold different weights: some rank changes weights, "
        "or its optimizer, by itself",
        "make the optimizer and its state the same on every rank, and change weights on all ranks alike",
    ),
    "weights-drift-under-ddp": Reason(
        "DDP reduced the gradients of every update, and after update {update} the ranks hold different weights all the "
        "same: each applies the gradients in another way, or changes weights by itself",
        "make the optimizer, its learning rate and its state the same on every rank; load a checkpoint on all ranks, or "
        "before DDP wraps the model, which sends rank 0's weights to all; change no weights outside the optimizer on one "
        "rank only",
    ),
    "weights-differ-and-ranks-talk": Reason(
        "ranks hold different weights after update {update}, and the script exchanges data between them by itself: whether "
        "that keeps a model together cannot be told",
        "compare the weights after a step by hand: all-gather the norm of one layer, and look at whether ranks agree",
    ),
    "ddp-bypassed": Reason(
        "DDP wraps the model, and no gradient was ever reduced: each of {ranks} ranks trains a model of its own. The "
        "forward pass goes around DDP (model.module(x), or the module that was wrapped)",
        "call the wrapped model: out = model(x) with model = DistributedDataParallel(module). Use model.module for saving "
        "only",
    ),
    "ranks-train-models-of-their-own": Reason(
        "each of {ranks} ranks trains a model of its own: weights or settings differ from the start, and hardly anything is "
        "exchanged. In an ensemble, or a search over settings, that is right",
        "if one model is meant, wrap it in DistributedDataParallel, and give the DataLoader a DistributedSampler",
    ),
    "nothing-is-reduced": Reason(
        "nothing is exchanged between the {ranks} ranks while they train, and their weights differ: each trains a model of "
        "its own",
        "wrap the model in DistributedDataParallel before the optimizer is made, and call the wrapped model in the loop",
    ),
    # same-draws
    "one-rank-draws-alone": Reason("one rank has nobody to draw the same as", "run with 2 ranks or more"),
    "no-inputs-compared": Reason(
        "no four calls of a model in training were compared between ranks",
        "run the script under `labkit doctor`, for some updates",
    ),
    "ranks-share-a-batch": Reason(
        "ranks hold parts of one model, and are to be given the same batch",
        "nothing: this question is for ranks with the whole model",
    ),
    "ranks-read-the-same": Reason(
        "all that models are called with is the same on all ranks: they read, or draw, the same samples",
        "look at rank-duplicates first: it says who reads what",
    ),
    "ranks-draw-apart": Reason("what models are called with differs between ranks, or does not change"),
    "ranks-draw-the-same": Reason(
        "a model is called with random numbers that are the same on all ranks in each of {calls:plural call/calls}, while "
        "the rest differs: the ranks learn from as much noise as one of them",
        "seed every rank apart once the model is built: torch.manual_seed(seed + rank), NumPy and random too",
    ),
    # model-start
    "no-start-seen": Reason(
        "nobody looked at the model before its first pass", "run the script under `labkit doctor`, which looks at it"
    ),
    "starts-as-given": Reason("no tensor is left as memory held it, none is out of range, and what was tied is tied"),
    "parameters-never-written": Reason(
        "parameters hold what memory happened to hold as to_empty reserved it: nobody initialised or loaded them "
        "({names}; {ranks:all rank/ranks})",
        "call the modules' reset_parameters() after to_empty, or load every key: a load with strict=False leaves out what "
        "is missing",
    ),
    "buffers-never-written": Reason(
        "buffers hold what memory happened to hold as to_empty reserved it ({names}; {ranks:all rank/ranks}): those with "
        "persistent=False are in no checkpoint, and a strict load does not miss them",
        "compute them again after to_empty (a method such as reset_buffers that the constructor calls too), or build the "
        "buffers on the device and only the parameters on meta",
    ),
    "weights-not-finite-at-the-start": Reason(
        "weights are not finite, or beyond all measure, before the first update ({names}; {ranks:all rank/ranks}): nobody "
        "initialised them, or they were loaded so",
        "initialise what torch.empty makes, and look at the checkpoint: torch.isfinite of each tensor",
    ),
    "tied-tensors-parted": Reason(
        "parameters that were one tensor are several since this call, and each trains by itself ({names}; {ranks:all "
        "rank/ranks})",
        "tie them again after to_empty, after a move from meta and after load_state_dict(assign=True), before the optimizer "
        "is made: model.head.weight = model.embedding.weight",
    ),
    "buffers-differ-at-the-start": Reason(
        "ranks begin with equal weights and with different buffers ({names})",
        "nothing, if a rank's buffers say what its part is; else broadcast them from rank 0, or compute them on every rank",
    ),
    # untrained-parameters
    "no-parameters-looked-at": Reason(
        "nobody looked at which parameters the optimizers hold", "run the script under `labkit doctor`, which looks at them"
    ),
    "every-gradient-is-applied": Reason("every parameter with a gradient is held by an optimizer"),
    "no-gradient-reaches": Reason(
        "an optimizer holds {share:.0%} of its weights in vain: {names} is computed in each pass, in training mode, and "
        "none of its {tensors:plural tensor/tensors} ever gets a gradient",
        "take the no_grad or the detach() away that lies between these modules and the loss; if they are to stay as they "
        "are, say so with requires_grad_(False) and eval(), and leave them out of the optimizer",
    ),
    "held-and-kept-as-it-is": Reason(
        "an optimizer holds {share:.0%} of its weights in vain: {names} is computed in evaluation mode and never gets a "
        "gradient, which may be meant",
        "if these modules are to stay as they are, say so with requires_grad_(False), and leave them out of the optimizer; "
        "else take away the no_grad or the detach() that lies between them and the loss",
    ),
    "unfrozen-after-ddp": Reason(
        "parameters are trained that were frozen when DDP wrapped the model ({names}): their gradients are never reduced, "
        "and each rank trains them on its own data alone",
        "set requires_grad before DistributedDataParallel is made, or wrap the model anew each time you unfreeze a part of "
        "it",
    ),
    "optimizer-holds-others": Reason(
        "parameters of the model get gradients and no optimizer holds them ({names}), while an optimizer holds "
        "{foreign:plural tensor/tensors} of no model that is trained: the model was changed after the optimizer was made",
        "make the optimizer last: after new layers are put in, after .to(device) of a copy, and after the model is wrapped",
    ),
    "made-after-the-optimizer": Reason(
        "parameters of the model get gradients, no optimizer holds them and they keep their values ({names}): they were put "
        "into the model after the optimizer was made",
        "make the optimizer after the last layer is in its place, or call optimizer.add_param_group for new ones",
    ),
    "model-has-no-optimizer": Reason(
        "all {tensors:plural tensor/tensors} of a model get gradients, and no optimizer holds any of them: it stays as it "
        "was",
        "give the optimizer the parameters of the model that is called: torch.optim.AdamW(model.parameters(), …)",
    ),
    "some-have-no-optimizer": Reason(
        "some parameters get gradients, and no optimizer holds them ({names}): they are computed in vain, or forgotten",
        "freeze them with requires_grad_(False) if they are to stay; else give them to the optimizer",
    ),
}
