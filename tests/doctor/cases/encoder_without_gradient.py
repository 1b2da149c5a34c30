"""An encoder is called under no_grad, and the optimizer holds its weights, which never get a gradient."""

import contextlib
import sys

import torch
from torch.nn.functional import cross_entropy

CASE = {"shows": "no gradient", "found": ["untrained-parameters/no-gradient-reaches"], "ranks": 1}

sick = sys.argv[1] == "sick"


class Classifier(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.encoder = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.ReLU(), torch.nn.Linear(32, 16))
        self.head = torch.nn.Linear(16, 2)

    def forward(self, inputs):
        with torch.no_grad() if sick else contextlib.nullcontext():
            features = self.encoder(inputs)
        return self.head(features)


torch.manual_seed(0)
model = Classifier()
optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2)  # <- here
for _ in range(16):
    batch = torch.randn(16, 8)
    optimizer.zero_grad()
    cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
    optimizer.step()
