"""Built on meta, sharded, given memory, initialised; tables that are not saved are computed again."""

import torch
import torch.distributed as dist
from torch import nn
from torch.distributed.fsdp import fully_shard

RANKS = 2


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.body, self.head = nn.Linear(16, 16), nn.Linear(16, 2)
        self.make_table(self.head.weight.device)

    def make_table(self, device):
        self.register_buffer("table", 1 / 50 ** (torch.arange(0, 16, device=device).float() / 16), persistent=False)

    def forward(self, batch):
        return self.head(self.body((batch * self.table).cos()).relu())


dist.init_process_group("gloo")
with torch.device("meta"):
    model = Net()
fully_shard(model.body)
fully_shard(model)
model.to_empty(device="cpu")
torch.manual_seed(0)
for part in model.modules():
    if hasattr(part, "reset_parameters"):
        part.reset_parameters()
model.make_table("cpu")
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
draw = torch.Generator().manual_seed(dist.get_rank())
for _ in range(12):
    batch = torch.randn(8, 16, generator=draw)
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
    torch.nn.utils.clip_grad_value_(model.parameters(), 0.05)
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
