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
        "labkit times each bucket's reduction and the backward pass, and adds up the part of the reductions that lies "
        "outside all computing.",
        "On a slow link even good buckets cannot be hidden: labkit asks for no more than the shorter of the two. Ranks that "
        "share cores wait for the scheduler; if noise decides, the answer is inconclusive.",
    ),
    "missing-no-sync": Explained(
        "DDP reduces in each backward pass. With K micro-batches in an update that is K reductions, of which the last one "
        "is enough: until then gradients add up on each rank.",
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
        "Local SGD leaves gradients unreduced on purpose and averages weights instead. If the ranks end with equal "
        "weights, it is no finding.",
    ),
    "per-parameter-reduction": Explained(
        "A collective costs a latency, however small it is. One for each parameter costs that latency hundreds of times a "
        "step; a bucket of several parameters costs it once.",
        """\
- model = DistributedDataParallel(net, bucket_cap_mb=0.001)
+ model = DistributedDataParallel(net)
""",
        "labkit counts the collectives of a step and their sizes.",
        "A model whose every parameter is large fills a bucket with each: that is right, and the answer is clear.",
    ),
    "needless-find-unused": Explained(
        "find_unused_parameters lets DDP walk the graph in each forward pass and reduce a list of what was used. It is "
        "needed where a step may leave parameters out. If none does, the walk and the extra reduction are wasted.",
        """\
- model = DistributedDataParallel(net, find_unused_parameters=True)
+ model = DistributedDataParallel(net)
""",
        "labkit checks whether any parameter was left out in any pass that it watched.",
        "A later step may leave one out. DDP then raises an error, so it is safe to try.",
    ),
    "late-rank": Explained(
        "A collective makes all ranks as slow as the slowest. Each rank's own step time is the same, so it names nobody. "
        "The others wait for the rank that comes last to each collective.",
        """\
- if dist.get_rank() == 0:
+ if dist.get_rank() == 0 and step % 100 == 0:
      draw_histograms(model, step)
""",
        "labkit notes when each rank comes to each reduction, by clocks that are aligned.",
        "If there are more threads than cores, ranks are late in turn. labkit names a rank only if noise that strikes ranks "
        "at random would hardly do the same.",
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
