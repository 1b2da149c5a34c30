"""An attack on the inputs before each update: its backward pass fills the weights' gradients too, which are then cleared."""

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

RANKS = 1

torch.manual_seed(0)
inputs = torch.randn(88, 8)
loader = DataLoader(TensorDataset(inputs, (inputs.sum(1) > 0).long()), batch_size=8, shuffle=True)
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.Linear(16, 2))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    for batch, labels in loader:
        attacked = batch.clone().requires_grad_()
        cross_entropy(model(attacked), labels).backward()
        optimizer.zero_grad()
        cross_entropy(model(batch + 0.05 * attacked.grad.sign()), labels).backward()
        optimizer.step()
