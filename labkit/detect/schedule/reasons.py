"""What the questions about the learning rate say."""

from __future__ import annotations

from ..catalogue import Reason

REASONS = {
    # learning-rate-schedule
    "learning-rates-not-recorded": Reason(
        "the learning rate of each update was not recorded", "run the script under `labkit doctor`, which records it"
    ),
    "learning-rate-negative": Reason(
        "the learning rate is {rate:.2g} at update {update}: a schedule went on past its end, and steps go uphill",
        "give the scheduler the number of optimizer steps of the whole run, and step it once after each optimizer.step()",
    ),
    "learning-rate-differs-between-ranks": Reason(
        "ranks use different learning rates, first at update {update}: their weights part",
        "step the scheduler on every rank alike; a scheduler that looks at a metric needs the same value on all ranks",
    ),
    "too-few-learning-rates": Reason("{updates:plural update/updates} cannot show a schedule", "run 20 updates or more"),
    "schedule-ends-early": Reason(
        "the learning rate is 0 for the last {share:.0%} of {updates:plural update/updates}: the scheduler is stepped "
        "{per:.3g} times an update, and its schedule is over too soon",
        "step the scheduler once after each optimizer.step(), not once a micro-batch or a rank; or give it as many steps as "
        "it is stepped",
    ),
    "learning-rate-without-a-schedule": Reason("no scheduler is used, and the learning rate is never 0"),
    "schedule-lasts": Reason("the learning rate is not used up before the run ends, and is the same on all ranks"),
}
