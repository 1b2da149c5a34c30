"""A thread saves the state as state_dict() gives it, and training goes on meanwhile."""

import copy
import io
import os
import sys
import tempfile
import threading
import time

import torch
from torch.nn.functional import cross_entropy

CASE = {"shows": "t2-ck async", "found": ["checkpoint-files/torn-by-training"], "ranks": 1}

sick = sys.argv[1] == "sick"
torch.manual_seed(0)
folder = tempfile.mkdtemp()
model = torch.nn.Linear(64, 2)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)


class SlowDisk(io.FileIO):
    """A file that takes its time, as one on a network does."""

    def write(self, data):
        time.sleep(0.001)
        return super().write(data)


def write(state, path):
    with SlowDisk(path, "w") as file:
        torch.save(state, file)  # <- here


threads = []
for step in range(24):
    batch = torch.randn(16, 64)
    optimizer.zero_grad()
    cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
    optimizer.step()
    if step % 8 == 7:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        if not sick:
            state = copy.deepcopy(state)
        threads.append(threading.Thread(target=write, args=(state, os.path.join(folder, f"{step}.pt"))))
        threads[-1].start()
    time.sleep(0.001)
for thread in threads:
    thread.join()
for name in os.listdir(folder):
    os.remove(os.path.join(folder, name))
os.rmdir(folder)
