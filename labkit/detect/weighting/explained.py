"""More of the questions about what ranks, micro-batches and targets weigh."""

from __future__ import annotations

from ..explained import Explained

SUBJECT, PLACE = "Gradients and updates", 3

EXPLAINED = {
    "gradient-average": Explained(
        "An update is to take the mean over the ranks of the gradients that the loss of one batch would give. A sum that "
        "nobody divides makes it W times as large on W ranks, a mean that is divided again W times too small. Adam "
        "divides by the size of the gradient, so the loss falls the same; clipping, weight decay in the gradient and "
        "logged norms are off, and with SGD so is the learning rate.",
        """\
  for parameter in model.parameters():
      dist.all_reduce(parameter.grad)
+     parameter.grad /= dist.get_world_size()
  optimizer.step()
""",
        "labkit projects what each backward pass gives on a rank, and what the optimizer takes, onto a few fixed random "
        "directions, at the first update and at each power of two. Projections are linear: those of the ranks are added "
        "up afterwards, and the factor is found. From the graph of the loss it reads whether that is a mean or a sum, and "
        "what it is multiplied by.",
        "A factor that the script gives on purpose looks like one that it does not: so a factor is found only where it is "
        "the number of ranks, and where the loss is known. Clipping is looked behind; clipping by hand is not, and shows "
        "as a factor that changes. Gradients of sharded parameters are not seen.",
    ),
    "accumulated-loss": Explained(
        "The gradients of K micro-batches add up. Their mean is wanted: each loss is divided by K, once. A loop that does "
        "not gives updates K times too large, and a loop that does so beside a framework that does so too gives updates "
        "K times too small.",
        """\
  for number, (inputs, labels) in enumerate(loader, 1):
-     loss_of(model(inputs), labels).backward()
+     (loss_of(model(inputs), labels) / K).backward()
      if number % K == 0:
          optimizer.step()
          optimizer.zero_grad()
""",
        "labkit reads from the graph of each loss what it is a mean of and divided by, as backward is called, and whether "
        "the passes of an update are given batches of their own.",
        "Several losses of one batch are added up rightly: backward on different lines, or on the same inputs, accuses "
        "nobody. A gradient that is divided after the passes counts as divided.",
    ),
    "loss-weighting": Explained(
        "The mean of means is the mean of all only where each is over as many targets. With texts of unequal length, a "
        "mean over the tokens of each micro-batch or rank gives a token of a short text more weight than one of a long "
        "text, and the loss depends on how the data is cut into batches.",
        """\
- loss = cross_entropy(logits, labels)
+ targets = (labels != -100).sum()
+ dist.all_reduce(targets)
+ loss = cross_entropy(logits, labels, reduction="sum") * dist.get_world_size() / targets
  loss.backward()
""",
        "labkit reads from the graph of each loss over how many targets it is taken, those that are ignored not counted, "
        "and works out how much of an update's weight lies on other targets than in one mean over all.",
        "A loss that means each text to weigh the same looks alike. Counts that differ a little, or in the last batch of "
        "an epoch alone, accuse nobody.",
    ),
    "gathered-features": Explained(
        "A contrastive loss compares the features of all ranks. torch.distributed.all_gather gives copies that no "
        "gradient flows through: what the loss says of the gathered features is lost, those of the rank itself among "
        "them.",
        """\
- parts = [torch.empty_like(features) for _ in range(dist.get_world_size())]
- dist.all_gather(parts, features)
+ from torch.distributed.nn.functional import all_gather  # passes gradients back
+ parts = all_gather(features)
  loss = loss_of(features, torch.cat(parts))
""",
        "labkit notes each all_gather of a tensor with a gradient, and looks in the graph of the next loss for rows that "
        "came from another rank.",
        "Gathering under no_grad, or of detached features, is on purpose and not looked at. Features that are changed "
        "before they are compared, other than in length, are not recognised; then labkit says that it cannot tell.",
    ),
}

FIXES = {
    "reduction-not-waited-for": """\
- for parameter in model.parameters():
-     dist.all_reduce(parameter.grad, async_op=True)
+ works = [dist.all_reduce(parameter.grad, async_op=True) for parameter in model.parameters()]
+ for work in works:
+     work.wait()
  optimizer.step()
""",
    "loss-divided-by-the-ranks": """\
- loss = loss / dist.get_world_size()
+ # DistributedDataParallel averages the gradients over the ranks
  loss.backward()
""",
    "global-count-averaged-again": """\
  dist.all_reduce(targets)
- loss = loss_sum / targets
+ loss = loss_sum * dist.get_world_size() / targets
  loss.backward()
""",
    "reduced-before-the-last-pass": """\
  for number, batch in enumerate(micro_batches, 1):
-     if number == len(micro_batches):
-         average_gradients(model)
      (loss_of(model(batch)) / len(micro_batches)).backward()
+ average_gradients(model)
  optimizer.step()
""",
    "gradients-lost-in-16-bits": """\
- model = model.to(torch.bfloat16)
- loss = loss_of(model(batch))
+ with torch.autocast("cuda", dtype=torch.bfloat16):
+     loss = loss_of(model(batch))
  loss.backward()
""",
    "loss-divided-twice": """\
- accelerator.backward(loss / K)
+ accelerator.backward(loss)  # which divides by the number of micro-batches
""",
}
