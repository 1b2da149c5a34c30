"""An attack on the inputs through DDP: its backward pass is reduced too, and its gradients are cleared."""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

RANKS = 2

dist.init_process_group("gloo")
torch.manual_seed(0)
inputs = torch.randn(192, 8)
data = TensorDataset(inputs, (inputs.sum(1) > 0).long())
sampler = DistributedSampler(data)
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2)))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for epoch in range(2):
    sampler.set_epoch(epoch)
    for batch, labels in DataLoader(data, batch_size=8, sampler=sampler):
        attacked = batch.clone().requires_grad_()
        cross_entropy(model(attacked), labels).backward()
        optimizer.zero_grad()
        cross_entropy(model(batch + 0.05 * attacked.grad.sign()), labels).backward()
        optimizer.step()
dist.barrier()
dist.destroy_process_group()
