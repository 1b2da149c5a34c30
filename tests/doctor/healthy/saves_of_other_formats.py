"""DDP with torch.distributed.checkpoint and safetensors: filled in place, rolled back, by objects that save themselves."""

import os
import shutil
import tempfile

import torch
import torch.distributed as dist
import torch.distributed.checkpoint as dcp
from safetensors.torch import load_file, load_model, save_file, save_model
from torch.distributed.checkpoint.state_dict import get_state_dict, set_state_dict
from torch.nn.functional import cross_entropy

NEEDS = "safetensors"
RANKS = 2


class Training:
    """A model and its optimizer, which a checkpoint asks for their state."""

    def __init__(self):
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(torch.nn.Linear(8, 16), torch.nn.ReLU(), torch.nn.Linear(16, 2))
        self.wrapped = torch.nn.parallel.DistributedDataParallel(self.model)
        self.optimizer = torch.optim.AdamW(self.model.parameters(), lr=0.01)
        self.schedule = torch.optim.lr_scheduler.CosineAnnealingLR(self.optimizer, 100)

    def state_dict(self):
        weights, moments = get_state_dict(self.model, self.optimizer)
        return {"model": weights, "optimizer": moments, "schedule": self.schedule.state_dict()}

    def load_state_dict(self, state):
        set_state_dict(self.model, self.optimizer, model_state_dict=state["model"], optim_state_dict=state["optimizer"])
        self.schedule.load_state_dict(state["schedule"])

    def train(self, updates):
        for _ in range(updates):
            batch = torch.randn(16, 8, generator=draw)
            self.optimizer.zero_grad()
            cross_entropy(self.wrapped(batch), (batch.sum(1) > 0).long()).backward()
            self.optimizer.step()
            self.schedule.step()


dist.init_process_group("gloo")
draw = torch.Generator().manual_seed(dist.get_rank())
folder = os.path.join(tempfile.gettempdir(), f"healthy-{os.environ['MASTER_PORT']}-formats")

# a whole training, which goes on in new objects
training = Training()
training.train(8)
dcp.save({"app": training}, checkpoint_id=folder + "/8")
training = Training()
dcp.load({"app": training}, checkpoint_id=folder + "/8")
training.train(8)

# rolled back, into a state that was asked for long before
state = {"app": {"model": training.model.state_dict()}}
training.train(4)
dcp.load(state, checkpoint_id=folder + "/8")
training.model.load_state_dict(state["app"]["model"])
training.train(4)

# weights for others, and a second stage that begins with them
if dist.get_rank() == 0:
    save_file(training.model.state_dict(), folder + "/weights.safetensors")
    save_model(training.model, folder + "/model.safetensors")
dist.barrier()
second = Training()
second.model.load_state_dict(load_file(folder + "/weights.safetensors"))
load_model(second.model, folder + "/model.safetensors")
second.train(8)
dist.barrier()
if dist.get_rank() == 0:
    shutil.rmtree(folder)
del training, second
dist.barrier()
dist.destroy_process_group()
