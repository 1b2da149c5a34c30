"""More of the questions about what the device does."""

from __future__ import annotations

from ..explained import Explained

SUBJECT, PLACE = "Use of the device", 8

EXPLAINED = {
    "utilisation": Explained(
        "MFU is the arithmetic that the model needs, over what the device could do in the same time. It is low if "
        "kernels are small, if they move more memory than they multiply numbers, or if the device waits. You do not see it "
        "in the loss.",
        """\
- scores = (q @ k.transpose(-2, -1) / q.shape[-1] ** 0.5).softmax(-1)
- out = scores @ v
+ out = torch.nn.functional.scaled_dot_product_attention(q, k, v)
""",
        "labkit computes the FLOPs of a step from the model's declared sizes and divides them by the best product that it "
        "measured on this machine.",
        "A ceiling that was measured while other programs ran is too low. Recomputation is work that the model does not "
        "need, and is not counted.",
        needs="a model whose sizes are declared, and a measured ceiling",
    ),
    "busy-not-useful": Explained(
        "The utilisation that a system shows is the share of time in which something runs. A loop that copies memory shows "
        "100 %, and so does one that computes what nobody needs.",
        """\
- train_one_step(batch)
+ with torch.profiler.profile() as profile:
+     train_one_step(batch)
+ print(profile.key_averages().table(sort_by="self_cpu_time_total"))
""",
        "labkit compares the processor time of a run with the arithmetic that goes into the model.",
        "A core that another program has is no idleness of this one: time in which a thread waited for a core counts as "
        "busy.",
        needs="a model whose sizes are declared, and processor times",
    ),
    "flop-convention": Explained(
        "You can compare two figures of MFU only if both count the same. torch's counter knows the operations that it "
        "was told of; a fused attention may not be among them. Formulas differ too: recomputation, causal halving, "
        "embeddings.",
        """\
  from torch.nn.attention import SDPBackend, sdpa_kernel
  from torch.utils.flop_counter import FlopCounterMode
- with FlopCounterMode() as counter:
+ with FlopCounterMode() as counter, sdpa_kernel(SDPBackend.MATH):
      model(inputs).sum().backward()
""",
        "labkit compares what the counter saw in a step with what the formula gives.",
        "A network whose first layer is large: that layer has no gradient of its input, so it does less than the formula "
        "says.",
        needs="a step whose FLOPs were counted",
    ),
}
