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
    "each-rank-tries-its-own-rate": Reason(
        "each rank uses a learning rate of its own from the first update on, and nothing is exchanged while they train",
        "nothing, if ranks are to try different settings; else give all of them the same",
    ),
    "learning-rate-differs-between-ranks": Reason(
        "ranks use different learning rates, first at update {update}: their weights part",
        "step the scheduler on every rank alike; a scheduler that looks at a metric needs the same value on all ranks",
    ),
    "learning-rates-of-models-apart": Reason(
        "ranks use different learning rates, and each trains a model of its own: a search over settings does so",
        "if one model is meant, give the optimizer the same learning rate on every rank",
    ),
    "too-few-learning-rates": Reason("{updates:plural update/updates} cannot show a schedule", "run 20 updates or more"),
    "schedule-ends-early": Reason(
        "the learning rate is 0 for the last {share:.0%} of {updates:plural update/updates}: the scheduler is stepped "
        "{per:.3g} times an update, and its schedule is over too soon",
        "step the scheduler once after each optimizer.step(), not once a micro-batch or a rank; or give it as many steps as "
        "it is stepped",
    ),
    "learning-rate-zero-at-first": Reason(
        "the learning rate is 0 for the first {first:plural update/updates}, {share:.0%} of the run: nothing is learned "
        "in them",
        "begin the warm-up above 0, as in (step + 1) / warm_up; a warm-up that is stepped once an epoch spends a whole "
        "epoch at its first value",
    ),
    "schedule-decays-to-nothing": Reason(
        "the learning rate is below 1/10,000 of its largest value for the last {share:.0%} of {updates:plural "
        "update/updates}: the scheduler is stepped {per:.3g} times an update, and decays too soon",
        "step a schedule that is made for epochs once an epoch, after its last batch; or give it lengths in updates",
    ),
    "scheduler-stepped-too-often": Reason(
        "{scheduler} is made for {length:plural step/steps}, as many as the run has updates, and is stepped {calls:,} "
        "times: it goes on past its end",
        "step the scheduler once after each optimizer.step(), not once a micro-batch or a rank",
    ),
    "scheduler-stepped-too-seldom": Reason(
        "{scheduler} is made for {length:plural step/steps}, as many as the run has updates, and is stepped {calls:,} "
        "times: the run ends where it has hardly begun",
        "step the scheduler after each optimizer.step(), not once an epoch; or give it its length in epochs",
    ),
    "epochs-schedule-stepped-by-updates": Reason(
        "{scheduler} is made for {length:plural step/steps}, as many as the run has epochs, and is stepped at each of "
        "{updates:plural update/updates}",
        "step it once an epoch, after the last batch; or give it its length in updates: epochs * len(loader)",
    ),
    "schedule-made-for-micro-batches": Reason(
        "{scheduler} is made for {length:plural step/steps}, {factor} times as many as the {updates:plural update/updates} "
        "of the run, which have {factor} backward passes each: the run ends where 1/{factor} of the schedule is done",
        "give it its length in updates: epochs * ceil(len(loader) / {factor})",
    ),
    "schedule-made-for-one-rank": Reason(
        "{scheduler} is made for {length:plural step/steps}, {factor} times as many as the {updates:plural update/updates} "
        "of the run. It has {factor} ranks: a length worked out from the size of the whole data set is too long by that",
        "give it its length in updates of a rank, epochs * len(loader), if the learning rate is to come to its end; leave "
        "it if the run stops early, or is to use the first part of the schedule alone",
    ),
    "scheduler-never-stepped": Reason(
        "{scheduler} is made and never stepped in {updates:plural update/updates}: the learning rate follows no schedule",
        "call scheduler.step() after each optimizer.step(), or once an epoch where it is made for epochs",
    ),
    "scheduler-of-another-optimizer": Reason(
        "{scheduler} lowers or raises the learning rate of an optimizer that makes no update ({first:.2g} to {last:.2g}). "
        "Another optimizer with the same parameters makes them, and keeps its rate of {rate:.2g}",
        "make the scheduler after the optimizer that makes the updates, and give it that one",
    ),
    "learning-rate-written-beside": Reason(
        "the script moves {name} from {first:.2g} to {last:.2g}, which no step of the optimizer reads: each update uses "
        "{rate:.2g}",
        'write it to the groups: for group in optimizer.param_groups: group["lr"] = rate',
    ),
    "scheduler-not-stepped-so-far": Reason(
        "{scheduler} was not stepped in {updates:plural update/updates}; it may be later", "run it to its end"
    ),
    "scheduler-before-optimizer": Reason(
        "the scheduler is stepped before the optimizer: the first learning rate of the schedule is never used, and each "
        "update uses that of the next",
        "call optimizer.step() first, then scheduler.step()",
    ),
    "metric-differs-between-ranks": Reason(
        "the scheduler looks at a metric that is another on each rank ({values:and}): sooner or later ranks lower their "
        "learning rates at different times, and train with different ones",
        "average the metric over the ranks before scheduler.step(metric), as in dist.all_reduce, sum by count",
    ),
    "learning-rate-without-a-schedule": Reason("no scheduler is used, and the learning rate is never 0"),
    "schedule-lasts": Reason("the learning rate is not used up before the run ends, and is the same on all ranks"),
}
