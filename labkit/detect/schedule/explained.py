"""More of the questions about the learning rate."""

from __future__ import annotations

from ..explained import Explained

SUBJECT, PLACE = "Learning rate", 3

EXPLAINED = {
    "learning-rate-schedule": Explained(
        "A schedule counts its own steps. Where it is stepped once a micro-batch, or once a rank, it is through long "
        "before the run is, and the rest of the run changes nothing. The loss is flat then, as at the end of any "
        "training.",
        """\
  for number, (inputs, labels) in enumerate(loader, 1):
      (loss_of(model(inputs), labels) / K).backward()
      if number % K == 0:
          optimizer.step()
          optimizer.zero_grad()
-     schedule.step()
+         schedule.step()
""",
        "labkit notes the learning rate that each update uses and counts the steps of schedulers between them.",
        "A schedule that reaches 0 before the run ends on purpose looks the same. A run that was cut short does not show "
        "the end of its schedule.",
    ),
}

FIXES = {
    "scheduler-of-another-optimizer": """\
- schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)
  optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3)
+ schedule = torch.optim.lr_scheduler.StepLR(optimizer, 10)
""",
    "learning-rate-written-beside": """\
- optimizer.lr = rate
+ for group in optimizer.param_groups:
+     group["lr"] = rate
""",
    "scheduler-before-optimizer": """\
  loss.backward()
- schedule.step()
  optimizer.step()
+ schedule.step()
""",
    "scheduler-never-stepped": """\
  for inputs, labels in loader:
      optimizer.zero_grad()
      loss_of(model(inputs), labels).backward()
      optimizer.step()
+     schedule.step()
""",
    "metric-differs-between-ranks": """\
  total = torch.tensor([loss_sum, count])
+ dist.all_reduce(total)
  schedule.step(total[0] / total[1])
""",
    "epochs-schedule-stepped-by-updates": """\
  for epoch in range(epochs):
      for inputs, labels in loader:
          train(inputs, labels)
-         schedule.step()
+     schedule.step()
""",
    "schedule-made-for-micro-batches": """\
- schedule = CosineAnnealingLR(optimizer, epochs * len(loader))
+ schedule = CosineAnnealingLR(optimizer, epochs * math.ceil(len(loader) / K))
""",
    "schedule-made-for-one-rank": """\
- schedule = CosineAnnealingLR(optimizer, epochs * (len(dataset) // batch_size))
+ schedule = CosineAnnealingLR(optimizer, epochs * len(loader))
""",
    "scheduler-stepped-too-seldom": """\
  for epoch in range(epochs):
      for inputs, labels in loader:
          train(inputs, labels)
-     schedule.step()
+         schedule.step()
""",
}
FIXES["schedule-decays-to-nothing"] = FIXES["epochs-schedule-stepped-by-updates"]
