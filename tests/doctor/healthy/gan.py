"""Two models that train against each other, an optimizer each; noise drawn anew."""

import torch
from torch.nn.functional import binary_cross_entropy_with_logits as loss_of
from torch.utils.data import DataLoader, TensorDataset

RANKS = 1

torch.manual_seed(0)
loader = DataLoader(TensorDataset(torch.randn(128, 4) * 2 + 1), batch_size=16, shuffle=True)
generator = torch.nn.Sequential(torch.nn.Linear(2, 16), torch.nn.ReLU(), torch.nn.Linear(16, 4))
critic = torch.nn.Sequential(torch.nn.Linear(4, 16), torch.nn.ReLU(), torch.nn.Linear(16, 1))
of_generator = torch.optim.Adam(generator.parameters(), lr=1e-3)
of_critic = torch.optim.Adam(critic.parameters(), lr=1e-3)
for _ in range(3):
    for (real,) in loader:
        made = generator(torch.randn(len(real), 2))
        of_critic.zero_grad()
        truth, fake = critic(real), critic(made.detach())
        (loss_of(truth, torch.ones_like(truth)) + loss_of(fake, torch.zeros_like(fake))).backward()
        of_critic.step()
        of_generator.zero_grad()
        judged = critic(made)
        loss_of(judged, torch.ones_like(judged)).backward()
        of_generator.step()
