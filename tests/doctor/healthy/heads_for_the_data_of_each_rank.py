"""A body that ranks share, and beside it a personalised head that begins equal on all ranks and stays each rank's own."""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, TensorDataset

RANKS = 2

dist.init_process_group("gloo")
torch.manual_seed(0)
body = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU()))
head = torch.nn.Linear(16, 2)
optimizer = torch.optim.SGD([*body.parameters(), *head.parameters()], lr=0.1)
inputs = torch.randn(96, 8, generator=torch.Generator().manual_seed(dist.get_rank()))
labels = (inputs[:, dist.get_rank()] > 0).long()  # what is asked differs between ranks
loader = DataLoader(TensorDataset(inputs, labels), batch_size=8, shuffle=True)
for _ in range(2):
    for batch, wanted in loader:
        optimizer.zero_grad()
        cross_entropy(head(body(batch)), wanted).backward()
        optimizer.step()
dist.barrier()
dist.destroy_process_group()
