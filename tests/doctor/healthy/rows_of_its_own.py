"""Each rank makes rows of its own, and a DistributedSampler draws of them; a file is written over the last one."""

import os
import tempfile

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

RANKS = 2

dist.init_process_group("gloo")
torch.manual_seed(dist.get_rank())
inputs = torch.randn(128, 8)
data = TensorDataset(inputs, (inputs.sum(1) > 0).long())
sampler = DistributedSampler(data)
loader = DataLoader(data, batch_size=8, sampler=sampler)
raw = torch.nn.Linear(8, 2)
model = DistributedDataParallel(raw)
optimizer = torch.optim.AdamW(raw.parameters(), lr=1e-2)
with tempfile.TemporaryDirectory() as folder:
    for epoch in range(3):
        sampler.set_epoch(epoch)
        for batch, labels in loader:
            optimizer.zero_grad()
            cross_entropy(model(batch), labels).backward()
            optimizer.step()
        if dist.get_rank() == 0:
            state = {"model": raw.state_dict(), "optimizer": optimizer.state_dict(), "epoch": epoch}
            torch.save(state, os.path.join(folder, "ckpt.pt"))
dist.barrier()
del model
dist.destroy_process_group()
