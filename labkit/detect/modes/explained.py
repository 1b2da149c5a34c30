"""More of the question about the mode of modules."""

from __future__ import annotations

from ..explained import Explained

SUBJECT, PLACE = "Gradients and updates", 3

EXPLAINED = {
    "train-mode": Explained(
        "Dropout and BatchNorm do other things in training than in evaluation. Evaluated without eval(), a model gives "
        "random answers, its BatchNorm normalises by the batch, and learns from the data that are held out. Left in "
        "eval(), it trains on without dropout, with statistics that no longer follow the data. No error is raised.",
        """\
  for epoch in range(epochs):
+     model.train()
      train_one_epoch(model, loader)
+     model.eval()
      with torch.no_grad():
          score = validate(model, held_out)
""",
        "labkit notes the mode of each model as it is called with a batch and as an optimizer makes a step, for models "
        "that have dropout or BatchNorm.",
        "Several calls a batch, as dropout is sampled with, and passes over the training data, as BatchNorm's statistics "
        "are made anew with, are inconclusive. A model that is in evaluation mode from the first update on is no finding.",
    ),
}

FIXES = {
    "stays-in-evaluation-mode": """\
- model.train()
  for epoch in range(epochs):
+     model.train()
      train_one_epoch(model, loader)
      validate(model, held_out)
""",
}
