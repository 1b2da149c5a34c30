"""More of the questions about what ranks hold alike."""

from __future__ import annotations

from ..explained import Explained

SUBJECT, PLACE = "Gradients and updates", 3

EXPLAINED = {
    "replicas-differ": Explained(
        "Ranks that train one model together begin with the same weights and apply the same gradient, so that they hold "
        "the same weights to the bit after each update. Where the forward pass goes around DDP, where nothing is reduced, "
        "or where one rank changes weights by itself, each rank trains a model of its own. The loss falls on all of "
        "them.",
        """\
  model = DistributedDataParallel(net)
  for inputs, labels in loader:
      optimizer.zero_grad()
-     loss = loss_of(model.module(inputs), labels)
+     loss = loss_of(model(inputs), labels)
      loss.backward()
      optimizer.step()
""",
        "labkit hashes the weights on each rank after a few updates (large tensors by samples of their bytes) and "
        "compares the ranks' hashes afterwards. It makes no collective.",
        "Parts of a model (tensor or pipeline parallelism, experts) differ on purpose, and averaging weights now and then "
        "(local SGD) makes them equal again. Where the script exchanges data by itself, the answer is inconclusive. A head "
        "beside the wrapped model may be each rank's own: where ranks begin with different ones, save files of their own or "
        "read different classes, or the source speaks of a personal head, the answer is inconclusive too.",
        lab="overlap",
    ),
    "same-draws": Explained(
        "One seed for all ranks makes their weights equal, which is right. It also makes all that they draw afterwards "
        "equal: noise, latent vectors, time steps. Each rank has samples of its own, and the ranks together see as much "
        "noise as one.",
        """\
  torch.manual_seed(seed)
  model = DistributedDataParallel(Net())
+ torch.manual_seed(seed + dist.get_rank())
""",
        "labkit hashes the tensors that models are called with in the first calls of training and in some later ones, and "
        "compares ranks call by call. Constants and rising numbers, such as positions, are left out.",
        "Ranks that hold parts of one model must be given the same; where that can be, the question does not apply. Masks "
        "that dropout draws are not looked at.",
    ),
    "untrained-parameters": Explained(
        "An optimizer keeps the tensors that it was given. A head that is put in later is not among them: it gets "
        "gradients, and nobody applies them. DDP likewise reduces what could be trained when it wrapped the model; what "
        "is unfrozen later has a gradient of this rank alone.",
        """\
- optimizer = torch.optim.AdamW(model.parameters())
  model.head = torch.nn.Linear(512, 10)
+ optimizer = torch.optim.AdamW(model.parameters())
""",
        "labkit compares, after a few updates, the parameters that have a gradient with those that optimizers hold and "
        "with those that were frozen when DDP wrapped the model.",
        "A part that gets gradients by the way, and is to stay as it is, looks forgotten: where that can be, the answer "
        "is inconclusive.",
        lab="zero-stages",
    ),
    "model-start": Explained(
        "A model that is built on the meta device gets its memory later, filled with whatever that held. What nobody "
        "initialises or loads afterwards stays so; buffers that are not saved are the first to be forgotten. Tied "
        "parameters may become two tensors on the way, and each then learns by itself.",
        """\
  with torch.device("meta"):
      model = Net()
  model.to_empty(device="cpu")
  model.load_state_dict(torch.load(path))
+ model.head.weight = model.embedding.weight
+ model.positions = torch.arange(512)
""",
        "labkit looks at each model as its first pass of training begins: for values that are not finite or out of range, "
        "for tied tensors that have parted, and for what differs between ranks.",
        "Memory that happens to hold harmless values looks initialised. Weights that are meant to be very large look out "
        "of range.",
        lab="zero-stages",
    ),
}

FIXES = {
    "unfrozen-after-ddp": """\
- model = DistributedDataParallel(net)
  for parameter in net.body.parameters():
      parameter.requires_grad_(True)
+ model = DistributedDataParallel(net)
""",
    "ranks-never-joined": """\
+ dist.init_process_group("nccl")
- model = Net()
+ model = DistributedDataParallel(Net().cuda())
""",
    "nothing-is-reduced": """\
- model = Net().cuda()
+ model = DistributedDataParallel(Net().cuda())
  optimizer = torch.optim.AdamW(model.parameters())
""",
    "weights-drift-under-ddp": """\
- model = DistributedDataParallel(net)
  if dist.get_rank() == 0:
      net.load_state_dict(torch.load(path))
+ model = DistributedDataParallel(net)
""",
}
