"""Input and output embedding are one tensor on meta, and two once they have memory."""

import sys

import torch
from torch import nn

CASE = {"shows": "t2-init", "found": ["model-start/tied-tensors-parted"], "ranks": 1}


class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.embedding, self.head = nn.Embedding(32, 16), nn.Linear(16, 32, bias=False)
        self.tie()

    def tie(self):
        self.head.weight = self.embedding.weight

    def forward(self, words):
        return self.head(self.embedding(words).tanh())


sick = sys.argv[1] == "sick"
torch.manual_seed(0)
with torch.device("meta"):
    model = Net()
model.to_empty(device="cpu")  # <- here
if not sick:
    model.tie()
for part in (model.embedding, model.head):
    nn.init.normal_(part.weight, std=0.02)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
for _ in range(12):
    words = torch.randint(0, 32, (8, 6))
    optimizer.zero_grad()
    nn.functional.cross_entropy(model(words).flatten(0, 1), words.roll(-1, 1).flatten()).backward()
    optimizer.step()
