"""Accelerate divides the loss by the number of micro-batches, and the loop does so as well."""

import sys

import torch
from accelerate import Accelerator
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

CASE = {"shows": "acc-05 with Accelerate", "found": ["accumulated-loss/loss-divided-twice"]}

sick = sys.argv[1] == "sick"
K = 4
accelerator = Accelerator(gradient_accumulation_steps=K, cpu=True)
torch.manual_seed(0)
inputs = torch.randn(256, 8)
loader = DataLoader(TensorDataset(inputs, (inputs.sum(1) > 0).long()), batch_size=8, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for _ in range(3):
    for batch, labels in loader:
        with accelerator.accumulate(model):
            loss = cross_entropy(model(batch), labels)
            accelerator.backward(loss / K if sick else loss)  # <- here
            optimizer.step()
            optimizer.zero_grad()
accelerator.end_training()
