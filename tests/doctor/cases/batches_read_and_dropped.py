"""A resume within an epoch reads each batch that was trained on before, and drops it."""

import os
import sys
import tempfile
import time

import torch
from torch.nn.functional import cross_entropy
from torch.utils.data import DataLoader, Dataset

CASE = {"shows": "load-07", "found": ["resume-position/skipped-by-reading"], "ranks": 1}

sick = sys.argv[1] == "sick"
path = os.path.join(tempfile.mkdtemp(), "last.pt")


class Images(Dataset):
    """Each takes its time to be decoded."""

    def __init__(self):
        self.rows = torch.randn(64, 8)

    def __len__(self):
        return len(self.rows)

    def __getitem__(self, index):
        time.sleep(0.03)
        return self.rows[index], int(self.rows[index].sum() > 0)


class From:
    """Indices in an order of their own, from one on."""

    def __init__(self, size, begin):
        order = torch.randperm(size, generator=torch.Generator().manual_seed(1)).tolist()
        self.order = order[begin:]

    def __iter__(self):
        return iter(self.order)

    def __len__(self):
        return len(self.order)


def train(resume):
    model = torch.nn.Linear(8, 2)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    done = 0
    if resume:
        state = torch.load(path)  # <- here
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
        done = state["batches"]
    loader = DataLoader(images, batch_size=4, sampler=From(len(images), 0 if sick else 4 * done))
    for at, (batch, labels) in enumerate(loader, 0 if sick else done):
        if at < done:
            continue
        optimizer.zero_grad()
        cross_entropy(model(batch), labels).backward()
        optimizer.step()
        if at == 11 and not resume:
            state = {"model": model.state_dict(), "optimizer": optimizer.state_dict(), "batches": at + 1}
            torch.save(state, path)
            return


torch.manual_seed(0)
images = Images()
train(resume=False)
train(resume=True)
os.remove(path)
os.rmdir(os.path.dirname(path))
