"""More of the questions about what updates do."""

from __future__ import annotations

from ..explained import Explained
from ..fixes import WEIGHTS_IN_FP32

SUBJECT, PLACE = "Gradients and updates", 3

EXPLAINED = {
    "empty-updates": Explained(
        "An optimizer steps, the loop goes on, and no weight changes: the loss was cut off from the model, the learning "
        "rate is 0, the gradients are 0, or each update is less than half a step of the weight's number format. No error "
        "is raised.",
        """\
  for inputs, labels in loader:
      optimizer.zero_grad()
-     loss = torch.tensor(loss_of(model(inputs), labels).item(), requires_grad=True)
+     loss = loss_of(model(inputs), labels)
      loss.backward()
      optimizer.step()
""",
        "labkit compares weights of each optimizer before and after some of its steps, and notes the learning rate and "
        "the gradients at these.",
        "A part of the model that is to stay as it is gets no gradient on purpose. A warm-up that begins at 0 changes "
        "nothing in its first update. A few updates show nothing yet: then the answer is inconclusive.",
        lab="precision",
    ),
}

FIXES = {
    "optimizer-never-stepped": """\
  for inputs, labels in loader:
      optimizer.zero_grad()
      loss_of(model(inputs), labels).backward()
+     optimizer.step()
""",
    "updates-round-away-in-16-bits": WEIGHTS_IN_FP32,
}
