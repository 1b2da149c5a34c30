"""More of the questions about the reduction of gradients."""

from __future__ import annotations

from ..explained import Explained

SUBJECT, PLACE = "Gradient reduction", 4

EXPLAINED = {
    "exposed-communication": Explained(
        "DDP reduces gradients in buckets while the backward pass still computes the next ones. Where one bucket holds "
        "all, or where a loop reduces after the backward pass, nothing is left to compute meanwhile: ranks wait for the "
        "network.",
        """\
- model = DistributedDataParallel(net, bucket_cap_mb=1000)
+ model = DistributedDataParallel(net)
""",
        "labkit times each bucket's reduction and the backward pass, and counts what of the reductions lies outside all "
        "computing.",
        "On a slow link even good buckets cannot be hidden: no more is asked than the shorter of the two. Ranks that "
        "share cores wait for the scheduler; where noise decides, the answer is inconclusive.",
    ),
    "missing-no-sync": Explained(
        "DDP reduces in each backward pass. With K micro-batches in an update that is K reductions, of which the last one "
        "would do: gradients add up on each rank meanwhile.",
        """\
  for number, (inputs, labels) in enumerate(micro_batches):
-     (loss_of(model(inputs), labels) / len(micro_batches)).backward()
+     last = number + 1 == len(micro_batches)
+     with contextlib.nullcontext() if last else model.no_sync():
+         (loss_of(model(inputs), labels) / len(micro_batches)).backward()
  optimizer.step()
""",
        "labkit counts the backward passes between two updates, and how many of them reduced.",
        "Several losses that each have a backward pass look like micro-batches. They can share one reduction as well.",
    ),
    "misplaced-no-sync": Explained(
        "DDP decides in the forward pass whether the backward pass will reduce. With no_sync around the backward pass "
        "alone each micro-batch reduces. Around every micro-batch none does, and the ranks train apart without an error.",
        """\
- loss = loss_of(model(inputs), labels)
  with model.no_sync():
+     loss = loss_of(model(inputs), labels)
      loss.backward()
""",
        "labkit notes which passes ran in no_sync and which reduced, and compares the ranks' weights at the end.",
        "Local SGD leaves gradients unreduced on purpose and averages weights instead. Where the ranks' weights end "
        "equal, it is no finding.",
    ),
    "per-parameter-reduction": Explained(
        "A collective costs a latency, however small it is. One for each parameter costs that latency hundreds of times a "
        "step; a bucket of several parameters costs it once.",
        """\
- model = DistributedDataParallel(net, bucket_cap_mb=0.001)
+ model = DistributedDataParallel(net)
""",
        "labkit counts the collectives of a step and their sizes.",
        "A model whose every parameter is large fills a bucket with each: that is as it should be, and is clear.",
    ),
    "needless-find-unused": Explained(
        "find_unused_parameters lets DDP walk the graph in each forward pass and reduce a list of what was used. It is "
        "needed where a step may leave parameters out. Where none does, the walk and the extra reduction are for nothing.",
        """\
- model = DistributedDataParallel(net, find_unused_parameters=True)
+ model = DistributedDataParallel(net)
""",
        "labkit looks whether any parameter was left out in any pass that it watched.",
        "A later step may leave one out. DDP then raises an error, so that trying is safe.",
    ),
    "late-rank": Explained(
        "A collective makes all ranks as slow as the slowest. Each rank's own step time is the same, so it names nobody. "
        "The one that comes last to each collective is the one for whom the others wait.",
        """\
- if dist.get_rank() == 0:
+ if dist.get_rank() == 0 and step % 100 == 0:
      draw_histograms(model, step)
""",
        "labkit notes when each rank comes to each reduction, by clocks that are aligned.",
        "More threads than cores make ranks late by turns. A rank is named only where noise that strikes ranks at random "
        "would hardly do the same.",
    ),
}

FIXES = {
    "reduced-after-the-backward-pass": """\
+ model = DistributedDataParallel(model)
  for inputs, labels in loader:
      optimizer.zero_grad()
      loss_of(model(inputs), labels).backward()
-     for parameter in model.parameters():
-         dist.all_reduce(parameter.grad)
-         parameter.grad /= dist.get_world_size()
      optimizer.step()
""",
    "every-pass-in-no-sync": """\
  for number, (inputs, labels) in enumerate(micro_batches):
-     with model.no_sync():
+     last = number + 1 == len(micro_batches)
+     with contextlib.nullcontext() if last else model.no_sync():
          (loss_of(model(inputs), labels) / len(micro_batches)).backward()
  optimizer.step()
""",
}
FIXES["never-reduced-and-weights-differ"] = FIXES["last-pass-not-reduced"] = FIXES["every-pass-in-no-sync"]
