"""An average is kept by names of the plain model, and updated from the wrapped one, whose names begin with module."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

CASE = {"shows": "t2-ema-02", "found": ["averaged-weights/average-misses-names"], "ranks": 2}

sick = sys.argv[1] == "sick"


class EMA:
    """An exponential average of the parameters of a model."""

    def __init__(self, model, decay):
        self.decay = decay
        self.shadow = {name: p.detach().clone() for name, p in model.named_parameters()}

    @torch.no_grad()
    def update(self, model):
        for name, p in model.named_parameters():
            if name in self.shadow:
                self.shadow[name].lerp_(p, 1 - self.decay)


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    model = torch.nn.Linear(8, 2)
    ema = EMA(model, 0.99)
    wrapped = DistributedDataParallel(model)
    optimizer = torch.optim.SGD(wrapped.parameters(), lr=0.1)
    draw = torch.Generator().manual_seed(dist.get_rank())
    for _ in range(40):
        batch = torch.randn(16, 8, generator=draw)
        optimizer.zero_grad()
        cross_entropy(wrapped(batch), (batch.sum(1) > 0).long()).backward()
        optimizer.step()
        ema.update(wrapped if sick else model)
    del wrapped
    dist.destroy_process_group()


main()
