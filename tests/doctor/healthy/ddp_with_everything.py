"""DDP as a careful person writes it: sampler, validation, clipping, warm-up and decay, checkpoints, resume, bf16."""

import os
import tempfile

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, DistributedSampler, Subset, TensorDataset

RANKS = 2


def evaluate(model, loader):
    model.eval()
    counts = torch.zeros(2)
    with torch.no_grad():
        for batch, labels in loader:
            counts += torch.tensor([float((model(batch).argmax(1) == labels).sum()), float(len(labels))])
    model.train()
    dist.all_reduce(counts)
    return counts[0] / counts[1]


def save(path, model, optimizer, schedule, epoch):
    state = {
        "model": model.module.state_dict(),
        "optimizer": optimizer.state_dict(),
        "schedule": schedule.state_dict(),
        "epoch": epoch,
    }
    if dist.get_rank() == 0:
        torch.save(state, path + ".part")
        os.replace(path + ".part", path)
    dist.barrier()


dist.init_process_group("gloo")
torch.manual_seed(0)
inputs = torch.randn(240, 8)
data = TensorDataset(inputs, (inputs.sum(1) > 0).long())
train, held_out = Subset(data, range(192)), Subset(data, range(192, 240))
sampler = DistributedSampler(train)
loader = DataLoader(train, batch_size=8, sampler=sampler)
validation = DataLoader(held_out, batch_size=8, sampler=DistributedSampler(held_out, shuffle=False))
model = DistributedDataParallel(
    torch.nn.Sequential(
        torch.nn.Linear(8, 16), torch.nn.BatchNorm1d(16), torch.nn.ReLU(), torch.nn.Dropout(0.1), torch.nn.Linear(16, 2)
    )
)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
epochs = 3
schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.01, total_steps=epochs * len(loader) + 1)
path = os.path.join(tempfile.gettempdir(), f"healthy-{os.environ['MASTER_PORT']}.pt")
for epoch in range(epochs):
    sampler.set_epoch(epoch)
    for batch, labels in loader:
        optimizer.zero_grad()
        with torch.autocast("cpu", dtype=torch.bfloat16):
            loss = cross_entropy(model(batch), labels)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        schedule.step()
    evaluate(model, validation)
    save(path, model, optimizer, schedule, epoch)
if dist.get_rank() == 0:
    os.remove(path)
dist.barrier()
del model
dist.destroy_process_group()
