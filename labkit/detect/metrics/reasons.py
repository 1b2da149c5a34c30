"""What the questions about metrics say."""

from __future__ import annotations

from ..catalogue import Reason

_SUM_AND_COUNT = (
    "reduce the sum and the count, and divide after it: t = torch.tensor([loss_sum, count]); dist.all_reduce(t); t[0] / t[1]"
)

REASONS = {
    # evaluation-metric
    "no-evaluation-seen": Reason(
        "no pass of a loader was seen whose batches a model evaluates", "run it with its evaluation, to the end of a pass"
    ),
    "one-rank-evaluates-all": Reason("one rank evaluates, and all of it counts once"),
    "each-sample-counts-once": Reason("no evaluation counts samples twice or weighs ranks wrongly"),
    "nothing-is-evaluated": Reason(
        "{passes:plural evaluation/evaluations} ended without a batch: a metric over no samples",
        "look whether the data are fewer than a batch, with drop_last=True, or empty on this rank",
    ),
    "sum-is-summed-again": Reason(
        "a sum over the ranks is given to all_reduce again, with what was added to it: it grows {ranks}-fold with each call",
        "add up locally, and reduce once at the end; or reduce a copy: total.clone()",
    ),
    "means-of-unequal-parts": Reason(
        "ranks evaluated {rows:and} samples, and the mean of their means is {off:.1%} off the mean over all samples: a "
        "sample of a small part counts more",
        _SUM_AND_COUNT,
    ),
    "mean-of-unequal-batches": Reason(
        "the script keeps the mean of its batches' means, and the batches are not equally large: it is {off:.1%} off the "
        "mean over all samples",
        "add up sums and counts: total += loss.item() * len(batch); n += len(batch); total / n",
    ),
    "repeated-samples-count": Reason(
        "{padding:plural sample/samples} of {size:,} were evaluated twice, so that every rank has equally many, and count "
        "twice in what the ranks add up",
        "evaluate indices rank::world_size without a DistributedSampler, which repeats samples; or gather the predictions "
        "and cut them to len(data)",
    ),
    "repeated-samples-may-count": Reason(
        "{padding:plural sample/samples} of {size:,} were evaluated twice, so that every rank has equally many; whether "
        "they count twice was not seen",
        "gather the predictions and cut them to len(data), or evaluate indices rank::world_size",
    ),
    "one-rank-evaluates": Reason(
        "one rank evaluates for {share:.0%} of the run, and {others:plural other waits/others wait} meanwhile",
        "let each rank evaluate its part, and reduce sums and counts; or evaluate more seldom",
    ),
    "one-rank-evaluates-on-a-busy-machine": Reason(
        "one rank evaluates for {share:.0%} of the run, and other programs took cores from it",
        "run it on a quiet machine",
    ),
}
