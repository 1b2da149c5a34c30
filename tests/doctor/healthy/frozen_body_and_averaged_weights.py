"""Fine-tuning: a frozen body, a new head, an exponential average of the weights that is evaluated."""

import copy

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset, random_split

RANKS = 1

torch.manual_seed(0)
inputs = torch.randn(160, 8)
data = TensorDataset(inputs, (inputs.sum(1) > 0).long())
train, held_out = random_split(data, [128, 32])
body = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU()).requires_grad_(False)
model = torch.nn.Sequential(body, torch.nn.Linear(16, 2))
average = copy.deepcopy(model).requires_grad_(False)
optimizer = torch.optim.SGD([p for p in model.parameters() if p.requires_grad], lr=0.1, momentum=0.9)
schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer)
for _ in range(3):
    for batch, labels in DataLoader(train, batch_size=8, shuffle=True):
        loss = cross_entropy(model(batch), labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        with torch.no_grad():
            for mean, now in zip(average.parameters(), model.parameters(), strict=True):
                mean.lerp_(now, 0.1)
    with torch.inference_mode():
        losses = [float(cross_entropy(average(batch), labels)) for batch, labels in DataLoader(held_out, batch_size=16)]
    schedule.step(sum(losses))
