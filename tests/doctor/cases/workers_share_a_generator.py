"""The data set makes its generator as it is made: each worker has a copy, and all add the same noise."""

import sys

import numpy as np
import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset, get_worker_info

CASE = {"shows": "rng-01", "found": ["worker-random-numbers/workers-share-a-generator"], "ranks": 1}

sick = sys.argv[1] == "sick"


class Noisy(Dataset):
    """Rows with noise that is drawn as each is read."""

    def __init__(self):
        self.rows = torch.randn(64, 8)
        self.draw = np.random.default_rng(0)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, at):
        noise = torch.as_tensor(self.draw.normal(size=8), dtype=torch.float32)
        return self.rows[at] + 0.1 * noise, int(self.rows[at].sum() > 0)


def seed_worker(worker):
    """Give each worker a generator of its own."""
    get_worker_info().dataset.draw = np.random.default_rng(torch.initial_seed())


torch.manual_seed(0)
loader = DataLoader(Noisy(), batch_size=8, shuffle=True, num_workers=2, worker_init_fn=None if sick else seed_worker)
model = torch.nn.Linear(8, 2)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
for _ in range(2):
    for batch, labels in loader:  # <- here
        optimizer.zero_grad()
        cross_entropy(model(batch), labels).backward()
        optimizer.step()
