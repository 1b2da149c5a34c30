"""A healthy training that prints each loss and the state of every generator to the last bit."""

import random
import sys

import numpy as np
import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

several = "--alone" not in sys.argv
if several:
    dist.init_process_group("gloo")
random.seed(1)
np.random.seed(2)
torch.manual_seed(3)
inputs = torch.randn(64, 8)
data = TensorDataset(inputs, (inputs.sum(1) > 0).long())
sampler = DistributedSampler(data) if several else None
loader = DataLoader(data, batch_size=8, sampler=sampler, shuffle=sampler is None, num_workers=1)
model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.BatchNorm1d(8), torch.nn.Dropout(0.2), torch.nn.Linear(8, 2))
if several:
    model = DistributedDataParallel(model)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
lines = []
for epoch in range(2):
    if sampler is not None:
        sampler.set_epoch(epoch)
    for batch, labels in loader:
        optimizer.zero_grad()
        loss = cross_entropy(model(batch), labels)
        loss.backward()
        optimizer.step()
        lines.append(loss.item().hex())
lines += [str(random.random()), str(np.random.rand()), torch.rand(1).item().hex()]
if not several or dist.get_rank() == 0:
    print("\n".join(lines))
if several:
    dist.destroy_process_group()
