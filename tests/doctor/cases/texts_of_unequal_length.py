"""Micro-batches of one text each, of very unequal length: the mean of each is averaged with the others'."""

import sys

import torch
from torch.nn.functional import cross_entropy

CASE = {"shows": "acc-01", "found": ["loss-weighting/unequal-micro-batches-averaged"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
vocabulary, K = 32, 4
model = torch.nn.Sequential(torch.nn.Embedding(vocabulary, 16), torch.nn.Linear(16, vocabulary))
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
lengths = [100, 4, 4, 4]
for _ in range(12):
    texts = [torch.randint(0, vocabulary, (length + 1,)) for length in lengths]
    count = sum(len(text) - 1 for text in texts)
    for text in texts:
        logits = model(text[:-1])
        if sick:
            loss = cross_entropy(logits, text[1:]) / K
        else:
            loss = cross_entropy(logits, text[1:], reduction="sum") / count
        loss.backward()  # <- here
    optimizer.step()
    optimizer.zero_grad()
