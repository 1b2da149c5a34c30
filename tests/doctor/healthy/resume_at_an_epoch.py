"""Checkpoints at the end of each epoch; a run that dies within one begins that epoch again, in the same order."""

import os
import tempfile

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

RANKS = 2


def run(dies_at=None):
    torch.manual_seed(0)
    model = DistributedDataParallel(torch.nn.Linear(8, 2))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1, gamma=0.7)
    begin = 0
    if os.path.exists(path):
        state = torch.load(path, map_location="cpu")
        model.module.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        schedule.load_state_dict(state["schedule"])
        begin = state["epoch"] + 1
    sampler = DistributedSampler(data, seed=1)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    for epoch in range(begin, 4):
        sampler.set_epoch(epoch)
        for at, (batch, labels) in enumerate(loader):
            if (epoch, at) == dies_at:
                return
            loss = cross_entropy(model(batch), labels)
            optimizer.zero_grad()
            loss.backward()
            optimizer.step()
        schedule.step()
        if dist.get_rank() == 0:
            state = {"model": model.module.state_dict(), "optimizer": optimizer.state_dict()}
            torch.save({**state, "schedule": schedule.state_dict(), "epoch": epoch}, path + ".tmp")
            os.replace(path + ".tmp", path)
        dist.barrier()


dist.init_process_group("gloo")
inputs = torch.randn(160, 8, generator=torch.Generator().manual_seed(0))
data = TensorDataset(inputs, (inputs.sum(1) > 0).long())
path = os.path.join(tempfile.gettempdir(), f"healthy-{os.environ['MASTER_PORT']}-epochs.pt")
run(dies_at=(2, 5))
run()
dist.barrier()
if dist.get_rank() == 0:
    os.remove(path)
dist.barrier()
dist.destroy_process_group()
