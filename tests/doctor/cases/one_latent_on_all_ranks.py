"""Every rank of a GAN draws the same latent vectors: four ranks learn from as much noise as one."""

import sys

import torch
import torch.distributed as dist
from torch.nn.functional import binary_cross_entropy_with_logits as loss_of
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

CASE = {"shows": "rng-03", "found": ["same-draws/ranks-draw-the-same"], "ranks": 2}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
torch.manual_seed(0)
data = TensorDataset(torch.randn(160, 4) + 1)
loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))
generator = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)))
critic = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1)))
of_generator = torch.optim.Adam(generator.parameters(), lr=1e-3)
of_critic = torch.optim.Adam(critic.parameters(), lr=1e-3)
if not sick:
    torch.manual_seed(1 + dist.get_rank())
for (real,) in loader:
    made = generator(torch.randn(len(real), 2))
    of_critic.zero_grad()
    judged = critic(torch.cat([real, made.detach()]))
    loss_of(judged, torch.cat([torch.ones(len(real), 1), torch.zeros(len(real), 1)])).backward()
    of_critic.step()
    of_generator.zero_grad()
    critic.requires_grad_(False)
    loss_of(critic(made), torch.ones(len(real), 1)).backward()
    critic.requires_grad_(True)
    of_generator.step()
dist.barrier()
dist.destroy_process_group()
