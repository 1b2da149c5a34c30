"""Each rank has an expert of its own that DDP is told to leave alone; all of them are sent their tokens."""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel

RANKS = 2


class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.expert, self.head = torch.nn.Linear(8, 16), torch.nn.Linear(16, 16), torch.nn.Linear(16, 2)

    def forward(self, batch):
        return self.head(self.expert(self.body(batch)).relu())


dist.init_process_group("gloo")
draw = torch.Generator().manual_seed(dist.get_rank())
torch.manual_seed(0)
net = Net()
DistributedDataParallel._set_params_and_buffers_to_ignore_for_model(net, ["expert.weight", "expert.bias"])
model = DistributedDataParallel(net)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(14):
    batch = torch.randn(8, 8, generator=draw)
    optimizer.zero_grad()
    cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
