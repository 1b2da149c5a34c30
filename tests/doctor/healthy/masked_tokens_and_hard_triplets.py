"""Counts that vary by chance: a seventh of the tokens is masked, and of the triplets only the hard ones count."""

import torch
import torch.distributed as dist
from torch.nn.functional import cross_entropy, relu
from torch.nn.parallel import DistributedDataParallel

RANKS = 2

dist.init_process_group("gloo")
torch.manual_seed(0)
vocabulary = 32
model = DistributedDataParallel(torch.nn.Sequential(torch.nn.Embedding(vocabulary, 16), torch.nn.Linear(16, vocabulary)))
optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
draw = torch.Generator().manual_seed(dist.get_rank())
for _ in range(16):
    tokens = torch.randint(1, vocabulary, (8, 16), generator=draw)
    hidden = torch.rand(tokens.shape, generator=draw) < 0.15
    labels = torch.where(hidden, tokens, -100)
    logits = model(tokens.masked_fill(hidden, 0))
    optimizer.zero_grad()
    cross_entropy(logits.flatten(0, 1), labels.flatten()).backward()
    optimizer.step()
embed = DistributedDataParallel(torch.nn.Linear(8, 4))
optimizer = torch.optim.SGD(embed.parameters(), lr=0.01)
for _ in range(16):
    batch = torch.randn(48, 8, generator=draw)
    anchor, near, far = embed(batch).chunk(3)
    margins = (anchor - near).norm(dim=1) - (anchor - far).norm(dim=1) + 0.1
    hard = margins[margins > 1.0] if bool((margins > 1.0).any()) else margins
    optimizer.zero_grad()
    relu(hard).mean().backward()
    optimizer.step()
dist.barrier()
del model, embed
dist.destroy_process_group()
