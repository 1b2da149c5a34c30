"""Starts two ranks by itself, in the way that its first argument names; `sick` as the second leaves the sampler out."""

import os
import subprocess
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.multiprocessing as mp
from torch.nn.functional import mse_loss
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset


def train(rank: int, store: str, how: str) -> None:
    if store:
        dist.init_process_group("gloo", init_method=f"file://{store}", rank=rank, world_size=2)
    else:
        dist.init_process_group("gloo")
    torch.manual_seed(0)
    inputs = torch.randn(64, 8)
    data = TensorDataset(inputs, inputs.sum(1, keepdim=True))
    sampler = None if how == "sick" else DistributedSampler(data)
    loader = DataLoader(data, batch_size=4, sampler=sampler, shuffle=sampler is None, num_workers=how == "workers")
    model = DistributedDataParallel(torch.nn.Linear(8, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    for epoch in range(2):
        if sampler is not None:
            sampler.set_epoch(epoch)
        for batch, wanted in loader:
            optimizer.zero_grad()
            mse_loss(model(batch), wanted).backward()
            optimizer.step()
        if how == "raises" and dist.get_rank() == 1:
            raise RuntimeError("mine")
    dist.barrier()
    dist.destroy_process_group()


if __name__ == "__main__":
    by, how = sys.argv[1:]
    store = tempfile.mktemp()
    if by == "spawn":
        mp.spawn(train, args=(store, how), nprocs=2)
    elif by in ("fork", "forkserver"):
        started = [mp.get_context(by).Process(target=train, args=(rank, store, how)) for rank in range(2)]
        for process in started:
            process.start()
        for process in started:
            process.join()
    elif by == "torchrun":
        launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
        subprocess.run([*launcher, os.path.abspath(__file__), "rank", how], check=True)
    else:
        train(int(os.environ["RANK"]), "", how)
