"""Accelerate's LocalSGD: each rank trains by itself, and weights are averaged after every few updates."""

import torch
from accelerate import Accelerator
from accelerate.local_sgd import LocalSGD
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

RANKS = 2
NEEDS = "accelerate"

accelerator = Accelerator(cpu=True)
torch.manual_seed(0)
inputs = torch.randn(192, 8)
loader = DataLoader(TensorDataset(inputs, (inputs.sum(1) > 0).long()), batch_size=8, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for _ in range(2):
    with LocalSGD(accelerator=accelerator, model=model, local_sgd_steps=4) as local:
        for batch, labels in loader:
            accelerator.backward(cross_entropy(model(batch), labels))
            optimizer.step()
            optimizer.zero_grad()
            local.step()
accelerator.end_training()
