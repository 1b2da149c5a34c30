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
    "nothing-is-reduced": Reason(
        "nothing is exchanged between the {ranks} ranks while they train, and their weights differ: each trains a model of "
        "its own",
        "wrap the model in DistributedDataParallel before the optimizer is made, and call the wrapped model in the loop",
    ),
    # untrained-parameters
    "no-parameters-looked-at": Reason(
        "nobody looked at which parameters the optimizers hold", "run the script under `labkit doctor`, which looks at them"
    ),
    "every-gradient-is-applied": Reason("every parameter with a gradient is held by an optimizer"),
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
