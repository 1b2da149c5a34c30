"""Each worker takes seconds to set itself up, and new ones are started for each epoch."""

import sys
import time

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, TensorDataset

CASE = {"shows": "t2-load-01", "found": ["worker-restarts/workers-started-each-epoch"], "ranks": 1}

sick = sys.argv[1] == "sick"


def set_up(worker):
    """Stand for an index that is built, or files that are opened."""
    time.sleep(3.5)


torch.manual_seed(0)
inputs = torch.randn(96, 8)
data = TensorDataset(inputs, (inputs.sum(1) > 0).long())
loader = DataLoader(data, 8, shuffle=True, num_workers=2, worker_init_fn=set_up, persistent_workers=not sick)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(3):
    for batch, labels in loader:  # <- here
        optimizer.zero_grad()
        cross_entropy(model(batch), labels).backward()
        optimizer.step()
