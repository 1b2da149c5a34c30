"""A layer cut over two ranks by torch: both read the same, and are to."""

import torch
import torch.distributed as dist
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

RANKS = 2

dist.init_process_group("gloo")
mesh = init_device_mesh("cpu", (dist.get_world_size(),))
torch.manual_seed(0)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
parallelize_module(model, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
inputs = torch.randn(160, 8)
data = TensorDataset(inputs, (inputs.sum(1) > 0).long())
loader = DataLoader(data, batch_size=8, shuffle=True, generator=torch.Generator().manual_seed(1))
for _ in range(2):
    for batch, labels in loader:
        optimizer.zero_grad()
        cross_entropy(model(batch), labels).backward()
        optimizer.step()

dist.barrier()
del model
dist.destroy_process_group()
