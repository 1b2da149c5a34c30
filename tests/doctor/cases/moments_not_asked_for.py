"""torch.distributed.checkpoint fills what it is given: a new optimizer's state has no moments yet, so none are read."""

import os
import shutil
import sys
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.nn.functional import cross_entropy

CASE = {"shows": "t2-ck dcp", "found": ["resume-is-whole/moments-not-asked-for"], "ranks": 2}

sick = sys.argv[1] == "sick"
dist.init_process_group("gloo")
folder = os.path.join(tempfile.gettempdir(), f"case-{os.environ['MASTER_PORT']}-dcp")
draw = torch.Generator().manual_seed(dist.get_rank())


def train(updates, resume):
    torch.manual_seed(0)
    model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
    wrapped = torch.nn.parallel.DistributedDataParallel(model)
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    if resume and sick:
        state = {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
        dcp.load(state, checkpoint_id=folder)  # <- here
        model.load_state_dict(state["model"])
        optimizer.load_state_dict(state["optimizer"])
    elif resume:
        weights, moments = get_state_dict(model, optimizer)
        state = {"model": weights, "optimizer": moments}
        dcp.load(state, checkpoint_id=folder)
        set_state_dict(model, optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
    for _ in range(updates):
        batch = torch.randn(16, 8, generator=draw)
        optimizer.zero_grad()
        cross_entropy(wrapped(batch), (batch.sum(1) > 0).long()).backward()
        optimizer.step()
    if sick:
        return {"model": model.state_dict(), "optimizer": optimizer.state_dict()}
    return dict(zip(("model", "optimizer"), get_state_dict(model, optimizer), strict=True))


dcp.save(train(8, resume=False), checkpoint_id=folder)
train(8, resume=True)
dist.barrier()
if dist.get_rank() == 0:
    shutil.rmtree(folder)
dist.destroy_process_group()
