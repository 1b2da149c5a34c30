"""Factors that are meant: half of each of two losses, half a square, a gradient penalty."""

import torch
import torch.distributed as dist
from torch.nn.functional import binary_cross_entropy_with_logits as judged
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel

RANKS = 2

dist.init_process_group("gloo")
torch.manual_seed(0)
world_size = dist.get_world_size()
generator = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4)))
critic = DistributedDataParallel(torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1)))
of_generator = torch.optim.Adam(generator.parameters(), lr=1e-3)
of_critic = torch.optim.Adam(critic.parameters(), lr=1e-3)
draw = torch.Generator().manual_seed(dist.get_rank())
for _ in range(20):
    real = torch.randn(16, 4, generator=draw) * 2 + 1
    fake = generator(torch.randn(16, 2, generator=draw)).detach()
    scores = critic(torch.cat([real, fake]))
    truth, made = scores.chunk(2)
    loss_of_critic = (judged(truth, torch.ones_like(truth)) + judged(made, torch.zeros_like(made))) / 2
    between = torch.lerp(real, fake, torch.rand(16, 1, generator=draw)).requires_grad_()
    (slope,) = torch.autograd.grad(critic(between).sum(), between, create_graph=True)
    of_critic.zero_grad()
    (loss_of_critic + 10 * ((slope.norm(dim=1) - 1) ** 2).mean()).backward()
    torch.nn.utils.clip_grad_norm_(critic.parameters(), 0.5)
    of_critic.step()
    noise = torch.randn(16, 2, generator=draw)
    fake = generator(noise)
    critic.requires_grad_(False)
    loss = 0.5 * mse_loss(fake, noise.repeat(1, 2))
    of_generator.zero_grad()
    loss.backward()
    critic.requires_grad_(True)
    of_generator.step()
    shown = loss.detach().clone()
    dist.all_reduce(shown)
    mean_loss = shown / world_size
dist.barrier()
del generator, critic
dist.destroy_process_group()
