"""Train a new head, then the body too: torchrun --nproc-per-node 2 finetune.py"""

import contextlib

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset

EPOCHS, HEAD_ONLY, BATCH, ACCUMULATE = 6, 2, 8, 2


def make_data(size=512):
    points = torch.randn(size, 12, generator=torch.Generator().manual_seed(1))
    return TensorDataset(points, (points[:, 0] * points[:, 1] > 0).long())


def main():
    dist.init_process_group("gloo")
    torch.manual_seed(0)
    data = make_data()
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=BATCH, sampler=sampler)
    body = torch.nn.Sequential(torch.nn.Linear(12, 48), torch.nn.ReLU())
    network = torch.nn.Sequential(body, torch.nn.Linear(48, 2))
    body.requires_grad_(False)
    model = DistributedDataParallel(network)
    optimizer = torch.optim.AdamW(network.parameters(), lr=1e-2)
    updates = EPOCHS * len(loader) // ACCUMULATE
    schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=updates)
    for epoch in range(EPOCHS):
        sampler.set_epoch(epoch)
        if epoch == HEAD_ONLY:
            body.requires_grad_(True)
            model = DistributedDataParallel(network)
        for number, (points, classes) in enumerate(loader, 1):
            last = number % ACCUMULATE == 0
            with contextlib.nullcontext() if last else model.no_sync():
                loss = cross_entropy(model(points), classes) / ACCUMULATE
                loss.backward()
            if last:
                optimizer.step()
                optimizer.zero_grad()
                schedule.step()
        if dist.get_rank() == 0:
            print(f"epoch {epoch}: loss {loss.item() * ACCUMULATE:.3f}")
    dist.barrier()
    del model
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
