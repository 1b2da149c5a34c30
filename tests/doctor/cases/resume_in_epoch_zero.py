"""The resume builds its loader anew and tells it epoch 0: the rest of the epoch comes in the order of the first one."""

import os
import sys
import tempfile

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

CASE = {"shows": "t2-data-04", "found": ["resume-position/resumes-in-another-epoch"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
inputs = torch.randn(160, 8)
data = TensorDataset(inputs, (inputs.sum(1) > 0).long())
path = os.path.join(tempfile.mkdtemp(), "last.pt")


class Skipping:
    """Batches of a sampler from one on; it counts epochs for itself."""

    def __init__(self, sampler, skip, iteration):
        self.sampler, self.skip, self.iteration = sampler, skip, iteration
        self.epoch = iteration

    def set_epoch(self, epoch):
        self.sampler.set_epoch(epoch)

    def __iter__(self):
        self.set_epoch(self.iteration)
        order = list(self.sampler)
        yield from (order[at : at + 8] for at in range(8 * self.skip, len(order), 8))


def part(epoch, skip, stop, iteration):
    sampler = DistributedSampler(data, num_replicas=1, rank=0)
    sampler.set_epoch(epoch)
    for at, (batch, labels) in enumerate(DataLoader(data, batch_sampler=Skipping(sampler, skip, iteration))):  # <- here
        optimizer.zero_grad()
        cross_entropy(model(batch), labels).backward()
        optimizer.step()
        if at + 1 == stop:
            return


def made():
    model = torch.nn.Linear(8, 2)
    return model, torch.optim.AdamW(model.parameters(), lr=0.01)


model, optimizer = made()
part(0, 0, None, 0)
part(1, 0, 8, 1)
torch.save({"model": model.state_dict(), "optimizer": optimizer.state_dict(), "epoch": 1, "batch": 8}, path)
model, optimizer = made()
state = torch.load(path)
model.load_state_dict(state["model"])
optimizer.load_state_dict(state["optimizer"])
part(state["epoch"], state["batch"], None, 0 if sick else state["epoch"])
part(2, 0, None, 2)
os.remove(path)
