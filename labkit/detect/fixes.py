"""Diffs that several topics show as their fix."""

from __future__ import annotations

WEIGHTS_IN_FP32 = """\
- model = Net().to(torch.bfloat16)
+ model = Net()
  for inputs, labels in loader:
      optimizer.zero_grad()
-     loss = loss_of(model(inputs), labels)
+     with torch.autocast("cuda", dtype=torch.bfloat16):
+         loss = loss_of(model(inputs), labels)
      loss.backward()
      optimizer.step()
"""
"""Weights of 16 bits that small updates do not move: autocast computes in 16 bits, and the weights stay in fp32."""
