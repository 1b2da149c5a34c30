"""Windows of four micro-batches from a loader that begins again and again: they run on over the ends of epochs."""

import itertools

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

RANKS = 1

torch.manual_seed(0)
inputs = torch.randn(88, 8)
loader = DataLoader(TensorDataset(inputs, (inputs.sum(1) > 0).long()), batch_size=8, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
endless = itertools.chain.from_iterable(itertools.repeat(loader))
for _ in range(12):
    optimizer.zero_grad()
    for batch, labels in itertools.islice(endless, 4):
        (cross_entropy(model(batch), labels) / 4).backward()
    optimizer.step()
