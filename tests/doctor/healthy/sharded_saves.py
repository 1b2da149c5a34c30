"""FSDP2 with torch.distributed.checkpoint: all ranks save to one folder and load from it; then a save in the background."""

import os
import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.distributed.fsdp import fully_shard
from torch.nn.functional import cross_entropy

RANKS = 2


def made():
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    for layer in model:
        fully_shard(layer) if isinstance(layer, torch.nn.Linear) else None
    fully_shard(model)
    return model, torch.optim.AdamW(model.parameters(), lr=0.01)


def train(model, optimizer, steps):
    for _ in range(steps):
        batch = torch.randn(16, 8, generator=draw)
        optimizer.zero_grad()
        cross_entropy(model(batch), (batch.sum(1) > 0).long()).backward()
        optimizer.step()


dist.init_process_group("cpu:gloo")
aside = dist.new_group(backend="gloo")  # a save in the background has collectives of its own
draw = torch.Generator().manual_seed(dist.get_rank())
folder = os.path.join(tempfile.gettempdir(), f"healthy-{os.environ['MASTER_PORT']}-sharded")
model, optimizer = made()
train(model, optimizer, 8)
weights, moments = get_state_dict(model, optimizer)
dcp.save({"model": weights, "optimizer": moments}, checkpoint_id=folder + "/8")
model, optimizer = made()
weights, moments = get_state_dict(model, optimizer)
state = {"model": weights, "optimizer": moments}
dcp.load(state, checkpoint_id=folder + "/8")
set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
train(model, optimizer, 8)
weights, moments = get_state_dict(model, optimizer)
saving = dcp.async_save({"model": weights, "optimizer": moments}, checkpoint_id=folder + "/16", process_group=aside)
train(model, optimizer, 8)
saving.result()
dist.barrier()
if dist.get_rank() == 0:
    shutil.rmtree(folder)
dist.barrier()
dist.destroy_process_group()
