"""Stopped within an epoch; the resume reads the epoch from its start."""

import os
import sys
import tempfile

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

CASE = {"shows": "ck-05", "found": ["resume-position/epoch-begun-anew"], "ranks": 2}

sick = sys.argv[1] == "sick"


class From(DistributedSampler):
    """A sampler that can begin within an epoch."""

    begin = 0

    def __iter__(self):
        return iter(list(super().__iter__())[self.begin :])


def run(stop, resume):
    model = DistributedDataParallel(torch.nn.Linear(8, 2))
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    epoch, done = 0, 0
    if resume:
        state = torch.load(path)  # <- here
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        epoch, done = state["epoch"], state["batches"]
    sampler = From(data, shuffle=True)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    while epoch < 3:
        sampler.set_epoch(epoch)
        sampler.begin = 0 if sick else done * 8
        for batch, labels in loader:
            optimizer.zero_grad()
            cross_entropy(model(batch), labels).backward()
            optimizer.step()
            done += 1
            if (epoch, done) == stop:
                if dist.get_rank() == 0:
                    state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
                    torch.save(state | {"epoch": epoch, "batches": done}, path)
                dist.barrier()
                return
        epoch, done = epoch + 1, 0


dist.init_process_group("gloo")
torch.manual_seed(0)
inputs = torch.randn(160, 8)
data = TensorDataset(inputs, (inputs.sum(1) > 0).long())
path = os.path.join(tempfile.gettempdir(), f"case-{os.environ['MASTER_PORT']}-epoch.pt")
run((1, 5), False)
run(None, True)
if dist.get_rank() == 0:
    os.remove(path)
dist.barrier()
dist.destroy_process_group()
