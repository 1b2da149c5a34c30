"""More of the questions about collectives."""

from __future__ import annotations

from ..explained import Explained

SUBJECT, PLACE = "Hangs", 0

EXPLAINED = {
    "stands-still": Explained(
        "A collective returns when all ranks of its group are in it. A rank that has left its loop, has taken another "
        "branch or is in another collective keeps the others waiting. What you see is nothing for minutes, and then a "
        "timeout that names neither the rank nor the line.",
        """\
  for batch in loader:
      loss = loss_of(model(batch))
-     if not loss.isfinite():
+     bad = (~loss.isfinite()).float()
+     dist.all_reduce(bad, op=dist.ReduceOp.MAX)
+     if bad:
          continue
      loss.backward()
""",
        "labkit notes the last collective of each rank in a small file beside its record. Where no rank makes a step and "
        "none computes for a while, it takes each rank's stack and ends them.",
        "A long evaluation or download is no hang while it uses the processor. A rank that waits for a network is one "
        "where it waits longer than labkit does.",
    ),
    "barriers": Explained(
        "A barrier makes all ranks wait for the slowest one and sends nothing. The all-reduce of the gradients waits for "
        "it anyway. A barrier that was put into the loop to time or debug it costs a little in each step.",
        """\
  loss.backward()
- dist.barrier()
  optimizer.step()
""",
        "labkit counts the barriers that the script calls in each update.",
        "A barrier that orders something beside the training, such as a file that one rank writes, may be needed; it "
        "seldom is in every step.",
    ),
}
