"""Ranks read samples of their own and are seeded alike: a denoiser is given the same time steps on all of them."""

import sys

import torch
import torch.distributed as dist
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

CASE = {"shows": "rng-03", "found": ["same-draws/ranks-draw-the-same"], "ranks": 2}


class Denoiser(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.times, self.body = torch.nn.Embedding(100, 8), torch.nn.Linear(8, 8)

    def forward(self, noisy, time):
        return self.body(noisy + self.times(time))


sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
torch.manual_seed(0)
data = TensorDataset(torch.randn(160, 8))
loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
model = DistributedDataParallel(Denoiser())
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
if not sick:
    torch.manual_seed(1 + dist.get_rank())
for (clean,) in loader:
    time, noise = torch.randint(0, 100, (len(clean),)), torch.randn_like(clean)
    share = (time / 100)[:, None]
    optimizer.zero_grad()
    (model(clean * (1 - share) + noise * share, time) - noise).square().mean().backward()  # <- here
    optimizer.step()
dist.barrier()
dist.destroy_process_group()
