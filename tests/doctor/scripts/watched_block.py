"""Trains in a watched block under a launcher, every rank on the same samples; `raises` ends rank 1 within it."""

import itertools
import json
import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

import labkit.doctor

folder, how = sys.argv[1:]
dist.init_process_group("gloo")
torch.manual_seed(0)
inputs = torch.randn(64, 8)
loader = DataLoader(TensorDataset(inputs, inputs.sum(1, keepdim=True)), batch_size=4, shuffle=True)
with labkit.doctor.watch(record=folder) as seen:
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for batch, wanted in itertools.chain(loader, loader):
        optimizer.zero_grad()
        torch.nn.functional.mse_loss(model(batch), wanted).backward()
        optimizer.step()
    if how == "raises" and dist.get_rank() == 1:
        raise RuntimeError("mine")
found = None if seen.diagnosis is None else [verdict.reason for verdict in seen.diagnosis.found]
print(json.dumps({"rank": dist.get_rank(), "found": found}), flush=True)
dist.barrier()
dist.destroy_process_group()
