"""Fine-tuning with BatchNorm frozen: the whole model is in evaluation mode from the first update on."""

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

RANKS = 1

torch.manual_seed(0)
inputs = torch.randn(96, 8)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
model.eval()
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for _ in range(2):
    for batch, labels in DataLoader(TensorDataset(inputs, (inputs.sum(1) > 0).long()), 8, shuffle=True):
        optimizer.zero_grad()
        cross_entropy(model(batch), labels).backward()
        optimizer.step()
