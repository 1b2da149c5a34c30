"""More of the questions about ranks that do not wait for each other, or have to."""

from __future__ import annotations

from ..explained import Explained

SUBJECT, PLACE = "Asynchronous updates and slow ranks", 9

EXPLAINED = {
    "stale-gradients": Explained(
        "When ranks do not wait for each other, a gradient is applied to weights that have moved on since it was "
        "computed. Old gradients need a smaller learning rate than fresh ones, and act like momentum. More samples go by "
        "in a second, and the loss swings or stands still.",
        """\
- optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
+ optimizer = torch.optim.SGD(model.parameters(), lr=0.02)
""",
        "labkit takes the version of the weights that each gradient was computed on and applied to, and compares the loss "
        "with that of a synchronous run over as many samples. It takes a program that records versions.",
        "Without a synchronous run nothing shows what fresh gradients would have reached: the answer is inconclusive.",
        needs="the version of the weights behind each gradient",
    ),
    "repeatable": Explained(
        "Gradients that are applied in the order in which they arrive depend on the speed of each rank in each moment. "
        "Sums of floating-point numbers depend on their order too. Two runs with one seed then end with different "
        "weights.",
        """\
+ torch.manual_seed(seed)
+ torch.use_deterministic_algorithms(True)
  model = Net()
""",
        "labkit compares hashes of the final weights of several runs of one program.",
        "Equal weights in a few runs do not prove that the next one will be equal.",
        needs="a second run with the same seed",
    ),
    "straggler": Explained(
        "A collective makes every rank as slow as the slowest. The slow one computes longest and waits least. A worse "
        "host, heat, another job or longer samples can be the cause.",
        """\
- share = documents[dist.get_rank() :: dist.get_world_size()]
+ by_length = sorted(documents, key=len)
+ share = by_length[dist.get_rank() :: dist.get_world_size()]
""",
        "labkit times what each rank does outside of its communication, step by step.",
        "More threads than cores make some ranks slower than others; then the answer is inconclusive.",
    ),
}
