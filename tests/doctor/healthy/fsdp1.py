"""FullyShardedDataParallel as its manual has it: one seed, its own clipping, the optimizer last."""

import torch
import torch.distributed as dist
from torch.distributed.fsdp import FullyShardedDataParallel
from torch.nn.functional import cross_entropy

RANKS = 2

dist.init_process_group("gloo")
torch.manual_seed(0)
module = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
model = FullyShardedDataParallel(module, device_id=torch.device("cpu"), use_orig_params=True)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
draw = torch.Generator().manual_seed(dist.get_rank())
for _ in range(12):
    batch = torch.randn(8, 8, generator=draw)
    optimizer.zero_grad()
    cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
    model.clip_grad_norm_(0.1)
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
