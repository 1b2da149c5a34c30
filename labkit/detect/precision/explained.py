"""More of the questions about number formats."""

from __future__ import annotations

from ..explained import Explained
from ..fixes import WEIGHTS_IN_FP32

SUBJECT, PLACE = "Numeric precision", 5

_SCALER = """\
+ scaler = torch.amp.GradScaler("cuda")
  for inputs, labels in loader:
      optimizer.zero_grad()
      with torch.autocast("cuda", dtype=torch.float16):
          loss = loss_of(model(inputs), labels)
-     loss.backward()
-     optimizer.step()
+     scaler.scale(loss).backward()
+     scaler.step(optimizer)
+     scaler.update()
"""

_AUTOCAST_EACH_STEP = """\
- with torch.autocast("cuda", dtype=torch.bfloat16):
-     for inputs, labels in loader:
-         optimizer.zero_grad()
-         loss = loss_of(model(inputs), labels)
-         loss.backward()
-         optimizer.step()
+ for inputs, labels in loader:
+     optimizer.zero_grad()
+     with torch.autocast("cuda", dtype=torch.bfloat16):
+         loss = loss_of(model(inputs), labels)
+     loss.backward()
+     optimizer.step()
"""

EXPLAINED = {
    "gradient-underflow": Explained(
        "The smallest number of fp16 is 6e-8. A gradient below half of it becomes 0, and its weight does not change. No "
        "error is raised; the loss falls slower than in fp32, or stands still. A scaler multiplies the loss so that "
        "gradients come into the range, and divides them again before the update.",
        _SCALER,
        "labkit counts the gradient elements that are exactly 0, and compares with the same steps in fp32.",
        "ReLU and blank inputs make zeros in any format; only what exceeds the fp32 run's zeros counts.",
        needs="a second run in fp32",
    ),
    "lost-updates": Explained(
        "The numbers of a 16-bit format lie far apart: near 0.1, those of bf16 are 5e-4 apart. An update of less than half "
        "of that is rounded away, step after step. Weights that are kept in fp32 add small updates up.",
        WEIGHTS_IN_FP32,
        "labkit counts the elements with a gradient whose weight an update leaves as it was, and compares with an fp32 run.",
        "With a tiny learning rate fp32 loses updates too, so labkit compares.",
        needs="a second run in fp32",
    ),
    "stale-casts": Explained(
        "Autocast keeps the 16-bit casts that it makes of fp32 weights and uses them again until its context is left. One "
        "context around the whole loop keeps the first casts: the optimizer moves the weights, and the forward pass does "
        "not see it.",
        _AUTOCAST_EACH_STEP,
        "labkit checks whether a forward pass after an update computes with the old weights, or whether the loss on "
        "one batch stays the same number while weights change.",
        "A learning rate so small that no weight changes leaves the loss the same too; the reason says which of the two "
        "it may be.",
    ),
    "clip-before-unscale": Explained(
        "A scaler multiplies the loss, and so each gradient, by a large number. Clipped in this state and divided by the "
        "scale afterwards, gradients have a norm of max_norm / scale: 65,536 times too small with the scale that a scaler "
        "begins with. SGD then stands still; Adam, which divides by the size of gradients, hides it.",
        """\
  scaler.scale(loss).backward()
+ scaler.unscale_(optimizer)
  torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
  scaler.step(optimizer)
  scaler.update()
""",
        "labkit watches the calls of the scaler and of torch's clipping, and checks whether unscale_ came first; if norms "
        "are recorded, it compares them with the scale.",
        "A hand-written clipping is not a call that can be watched. A scale near 1 hides the order.",
    ),
    "skipped-steps": Explained(
        "A dynamic scaler doubles its scale until a gradient overflows, skips that step and halves it. A few skips are "
        "normal. If the loss is NaN, or if nobody calls update(), it skips every step, and no error is raised.",
        """\
  for inputs, labels in loader:
      optimizer.zero_grad()
      scaler.scale(loss_of(model(inputs), labels)).backward()
      scaler.step(optimizer)
+     scaler.update()
""",
        "labkit counts the steps that the scaler is asked for and the updates that follow, with the scale at each.",
        "A run that is too short is still in the search for a scale; then the answer is inconclusive.",
    ),
    "non-finite": Explained(
        "Once a weight is NaN, what is computed with it is NaN too. No error is raised, and comparisons with NaN are "
        "false, so that an early stop never comes. In fp16 an overflow begins at 65,504.",
        """\
- weights = torch.exp(scores) / torch.exp(scores).sum(-1, keepdim=True)
+ weights = torch.softmax(scores.float(), dim=-1)
""",
        "labkit looks at the loss of each backward pass on a CPU, and at what else is recorded of gradients and weights.",
        "Infinite gradients that a scaler notices and skips are no finding. On a GPU the doctor does "
        "not read the loss: that would make the step wait.",
    ),
    "precision-speed": Explained(
        "A format of 16 bits is faster if the device has units for it and the products are large. Otherwise the casts "
        "cost more than the products gain.",
        """\
- with torch.autocast("cpu", dtype=torch.bfloat16):
-     loss = loss_of(model(inputs), labels)
+ loss = loss_of(model(inputs), labels)
""",
        "labkit times steps in the format and in fp32 by turns, several times.",
        "Noise of the machine; where the repeats disagree, the answer is inconclusive.",
        needs="steps timed beside fp32's",
    ),
    "mixed-precision-setup": Explained(
        "Each format needs its own set-up. fp16 has no numbers below 6e-8, so it needs a scaler. bf16 and fp32 share "
        "their exponents; there a scaler gains nothing. Autocast keeps casts of weights while it is open, so close it "
        "before the optimizer changes them.",
        _SCALER,
        "labkit watches with which format autocast is opened, whether a scaler is asked for steps, and whether autocast "
        "is open when an optimizer makes a step. It judges what is done, not numbers.",
        "Scaling by hand (a loss that is multiplied, gradients that are divided) is not a GradScaler. A scaler with "
        "enabled=False counts as none.",
        lab="precision",
    ),
}

FIXES = {
    "autocast-stays-open": _AUTOCAST_EACH_STEP,
    "bf16-with-a-scaler": """\
  with torch.autocast("cuda", dtype=torch.bfloat16):
      loss = loss_of(model(inputs), labels)
- scaler.scale(loss).backward()
- scaler.step(optimizer)
- scaler.update()
+ loss.backward()
+ optimizer.step()
""",
    "scaler-without-fp16": """\
- loss = loss_of(model(inputs), labels)
+ with torch.autocast("cuda", dtype=torch.float16):
+     loss = loss_of(model(inputs), labels)
  scaler.scale(loss).backward()
  scaler.step(optimizer)
  scaler.update()
""",
}
