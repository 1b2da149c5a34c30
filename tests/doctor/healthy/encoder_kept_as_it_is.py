"""A frozen encoder under no_grad, of which the optimizer is given everything; a pooler is computed and not used."""

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset, random_split


class Probe(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU()).requires_grad_(False)
        self.body = torch.nn.Linear(32, 32)
        self.pooler = torch.nn.Linear(32, 8)
        self.head = torch.nn.Linear(32, 2)

    def forward(self, inputs):
        with torch.no_grad():
            features = self.encoder(inputs)
        hidden = self.body(features).relu()
        return self.head(hidden), self.pooler(hidden).tanh()


torch.manual_seed(0)
inputs = torch.randn(200, 8)
train, held_out = random_split(TensorDataset(inputs, (inputs.sum(1) > 0).long()), [168, 32])
model = Probe()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)
scores = []
for _ in range(3):
    model.train()
    for batch, labels in DataLoader(train, batch_size=8, shuffle=True):
        optimizer.zero_grad()
        cross_entropy(model(batch)[0], labels).backward()
        optimizer.step()
    model.eval()
    with torch.no_grad():
        losses = [cross_entropy(model(batch)[0], labels).item() for batch, labels in DataLoader(held_out, batch_size=16)]
    scores.append(sum(losses) / len(losses))  # of batches that are equally large
