"""Where to begin in the exercises on ZeRO, hints, and solutions."""

from __future__ import annotations

from ..help import Help

_STAGE = Help(
    start="""\
def my_stage(case):
    return 3  # it saves the most: repair it


lab.check(my_stage)
""",
    hints=(
        "Mixed precision with Adam keeps 16 bytes a parameter: 2 for the weight, 2 for the gradient, 12 for the optimizer.",
        "Stage 1 divides the 12 by W, stage 2 the gradient's 2 as well, stage 3 the weight's 2 too. What activations take "
        "(case.reserve_gb) is divided by no stage.",
        "Go from stage 0 upwards and take the first that fits into memory_gb - reserve_gb. A GB is 1e9 bytes here.",
    ),
    solution="""\
def my_stage(case):
    room = (case.memory_gb - case.reserve_gb) * 1e9
    psi, share = case.params, case.params / case.devices
    takes = [16 * psi, 4 * psi + 12 * share, 2 * psi + 14 * share, 16 * share]
    return next((stage for stage in range(4) if takes[stage] <= room), None)
""",
)

_SHARDED = Help(
    start="""\
import torch
import torch.distributed as dist


class MyOptimizer:
    def __init__(self, parameters, lr):
        self.parameters = list(parameters)
        self.adam = torch.optim.Adam(self.parameters, lr=lr)  # all of the state on every rank: divide it

    def step(self):
        for parameter in self.parameters:
            dist.all_reduce(parameter.grad)
            parameter.grad /= dist.get_world_size()
        self.adam.step()


def my_optimizer(parameters, lr):
    return MyOptimizer(parameters, lr)


lab.check(my_optimizer, "sharded-optimizer")
""",
    hints=(
        "Think of all parameters as one flat tensor, padded with zeros to a multiple of W. Rank r owns the r-th part. Its "
        "Adam gets one parameter: a copy of that part.",
        "step() has three parts: dist.reduce_scatter_tensor(mine, flat_gradients) gives each rank the sums of its part; "
        "divide by W and let Adam step; dist.all_gather_into_tensor(flat_weights, part) gives everybody all parts.",
        "Copy the gathered weights back into each parameter under torch.no_grad(). Keep no flat tensor between two steps: "
        "what a rank keeps beside weights and gradients is counted.",
    ),
    solution="""\
import torch
import torch.distributed as dist


class MyOptimizer:
    def __init__(self, parameters, lr):
        self.parameters = list(parameters)
        self.world_size, self.rank = dist.get_world_size(), dist.get_rank()
        self.sizes = [p.numel() for p in self.parameters]
        self.share = -(-sum(self.sizes) // self.world_size)
        flat = self.flat([p.detach() for p in self.parameters])
        self.part = flat[self.rank * self.share : (self.rank + 1) * self.share].clone().requires_grad_()
        self.adam = torch.optim.Adam([self.part], lr=lr)

    def flat(self, tensors):
        padded = torch.zeros(self.share * self.world_size)
        torch.cat([tensor.reshape(-1) for tensor in tensors], out=padded[: sum(self.sizes)])
        return padded

    def step(self):
        self.part.grad = torch.empty(self.share)
        dist.reduce_scatter_tensor(self.part.grad, self.flat([p.grad for p in self.parameters]))
        self.part.grad /= self.world_size
        self.adam.step()
        self.part.grad = None
        whole = torch.empty(self.share * self.world_size)
        dist.all_gather_into_tensor(whole, self.part.detach())
        with torch.no_grad():
            for parameter, new in zip(self.parameters, whole[: sum(self.sizes)].split(self.sizes)):
                parameter.copy_(new.view_as(parameter))


def my_optimizer(parameters, lr):
    return MyOptimizer(parameters, lr)
""",
    note="Adam works number by number, so this equals the plain optimizer to the bit. Would it with clipping by the global "
    "norm? Each rank has the norm of its own part alone.",
)


def stage() -> Help:
    """For the cheapest stage that fits."""
    return _STAGE


def sharded_optimizer() -> Help:
    """For an optimizer whose state is divided."""
    return _SHARDED
