"""More of the questions about gradients between updates."""

from __future__ import annotations

from ..explained import Explained

SUBJECT, PLACE = "Gradients and updates", 3

EXPLAINED = {
    "old-gradients": Explained(
        "backward() adds to the gradients that are there. Where nobody clears them, each update uses all gradients since "
        "the start. Where only whole windows of K micro-batches end in an update, what is left at the end of an epoch "
        "joins the next window, or is cleared unused.",
        """\
  for inputs, labels in loader:
+     optimizer.zero_grad()
      loss_of(model(inputs), labels).backward()
      optimizer.step()
""",
        "labkit looks at the gradient of one parameter as each backward pass begins: whether it is empty, and whether an "
        "update has used it.",
        "A parameter whose gradient is 0 looks cleared. A program that clears gradients by hand is seen as well, for the "
        "gradient is looked at, and not the call.",
    ),
}

FIXES = {
    "last-window-dropped": """\
  for number, (inputs, labels) in enumerate(loader, 1):
      (loss_of(model(inputs), labels) / K).backward()
-     if number % K == 0:
+     if number % K == 0 or number == len(loader):
          optimizer.step()
          optimizer.zero_grad()
"""
}
FIXES["window-over-two-epochs"] = FIXES["last-window-dropped"]
