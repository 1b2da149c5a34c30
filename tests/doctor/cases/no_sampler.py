"""Each rank has a plain shuffled loader over all data, and one seed: all ranks read the same."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

CASE = {"shows": "data-01", "found": ["rank-duplicates/ranks-identical"]}


def loaders(data, sick):
    if sick:
        return DataLoader(data, batch_size=8, shuffle=True)
    return DataLoader(data, batch_size=8, sampler=DistributedSampler(data))


def train(model, loader, optimizer, epochs):
    for epoch in range(epochs):
        if isinstance(loader.sampler, DistributedSampler):
            loader.sampler.set_epoch(epoch)
        for batch, labels in loader:  # <- here
            optimizer.zero_grad()
            cross_entropy(model(batch), labels).backward()
            optimizer.step()


if __name__ == "__main__":
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    inputs = torch.randn(96, 8)
    data = TensorDataset(inputs, (inputs.sum(1) > 0).long())
    model = DistributedDataParallel(torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    train(model, loaders(data, sys.argv[1] == "sick"), optimizer, 2)
    dist.destroy_process_group()
