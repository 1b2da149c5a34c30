"""More of the questions about sharded models."""

from __future__ import annotations

from ..explained import Explained

SUBJECT, PLACE = "Sharded models", 6

EXPLAINED = {
    "optimizer-before-sharding": Explained(
        "FSDP2 puts sharded parameters in the place of the old ones. An optimizer that was made before holds the old "
        "ones: its steps move tensors that nothing computes with, and keep them in memory. Under DDP the order does not "
        "matter, because the parameters stay the same objects.",
        """\
- optimizer = torch.optim.AdamW(model.parameters())
  for block in model.blocks:
      fully_shard(block)
  fully_shard(model)
+ optimizer = torch.optim.AdamW(model.parameters())
""",
        "labkit looks up which parameters the optimizer holds, and which of them the model still has.",
        "A second model, or a part that was removed on purpose: if weights move all the same, the answer is inconclusive.",
    ),
    "per-rank-norm": Explained(
        "The norm of a gradient belongs to the whole model. A function that sees one shard finds the shard's norm, "
        "and one that is called before gradients are averaged finds the rank's own. Each rank then scales by a factor of "
        "its own, and the update has another direction.",
        """\
  loss.backward()
- torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
+ model.clip_grad_norm_(1.0)
  optimizer.step()
""",
        "labkit compares the norm that each rank finds at the same step.",
        "Ranks that train apart for some steps on purpose (local SGD) have norms of their own. The order of sums changes "
        "the last digits, and that is tolerated.",
    ),
    "unequal-init": Explained(
        "DDP sends rank 0's weights to all ranks when it wraps a model. fully_shard does not: each rank keeps its shard "
        "of its own weights. With seeds that differ by rank, the model that trains is put together from several "
        "initialisations.",
        """\
- torch.manual_seed(seed + dist.get_rank())
+ torch.manual_seed(seed)
  model = fully_shard(Net())
+ torch.manual_seed(seed + dist.get_rank())
""",
        "labkit compares hashes of the ranks' weights before the model is wrapped and after it.",
        "A broadcast or a loaded checkpoint after wrapping makes ranks equal again; the hash after wrapping shows it.",
    ),
    "wrong-stage": Explained(
        "A higher stage of ZeRO holds less and sends more: stage 3 gathers the weights again for the backward pass. If a "
        "lower stage fits into memory, ranks wait for bytes that need not be sent.",
        """\
  for block in model.blocks:
-     fully_shard(block)
+     fully_shard(block, reshard_after_forward=False)
  fully_shard(model)
""",
        "labkit measures what a rank holds, counts the bytes that it sends, and times the steps of each strategy on one "
        "link.",
        "More bytes on a link that hides them cost no time, and are no finding.",
        needs="the memory of a device, and a run of another stage",
    ),
}
