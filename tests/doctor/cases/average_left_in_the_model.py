"""For each validation averaged weights are copied into the model, and nobody takes them out."""

import copy
import sys

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

CASE = {"shows": "t2-ema-01", "found": ["weights-put-back/average-left-in-the-model"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
inputs = torch.randn(192, 8)
labels = (inputs.sum(1) > 0).long()
train = TensorDataset(inputs[:128], labels[:128])
model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
ema = {name: weight.detach().clone() for name, weight in model.named_parameters()}


def validate():
    kept = copy.deepcopy(model.state_dict())
    with torch.no_grad():
        for name, weight in model.named_parameters():
            weight.copy_(ema[name])
        model.eval()
        right = (model(inputs[128:]).argmax(1) == labels[128:]).float().mean()  # <- here
        model.train()
        if not sick:
            model.load_state_dict(kept)
    return right


for _ in range(4):
    for batch, wanted in DataLoader(train, batch_size=16, shuffle=True):
        optimizer.zero_grad()
        cross_entropy(model(batch), wanted).backward()
        optimizer.step()
        with torch.no_grad():
            for name, weight in model.named_parameters():
                ema[name].lerp_(weight, 0.05)
    validate()
