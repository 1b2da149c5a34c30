"""More of the questions about metrics."""

from __future__ import annotations

from ..explained import Explained

SUBJECT, PLACE = "Metrics", 5

EXPLAINED = {
    "evaluation-metric": Explained(
        "A DistributedSampler repeats samples so that every rank gets equally many, and these count twice. Ranks with "
        "unequal parts that average their means weigh a sample of a small part more. The number looks like any other.",
        """\
- mean = loss_sum / count
- dist.all_reduce(mean)
- mean = mean / dist.get_world_size()
+ both = torch.stack([loss_sum, count])
+ dist.all_reduce(both)
+ mean = both[0] / both[1]
""",
        "labkit counts the samples that each rank evaluates, and notes the numbers that ranks reduce after it. It notes "
        "what .item() gives of each batch, and looks whether the script keeps the plain mean of these numbers.",
        "What a library reduces is not judged, nor predictions that are gathered, which may be cut afterwards: then the "
        "answer is inconclusive. A mean of batches of different sizes that is off by less than 2 % is left open. Counts "
        "of right answers may be divided by the size of the data.",
    ),
}
