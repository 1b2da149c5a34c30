"""What the questions about staleness, order and pace say."""

from __future__ import annotations

from ..catalogue import Reason

REASONS = {
    # repeatable
    "run-was-made-once": Reason(
        "the run was made once",
        "run it again in the role repeat (--set repeats=1)",
        "run it again, and compare what probe.digest('weights', model.parameters()) returns at the end",
    ),
    "weights-not-in-every-run": Reason(
        "the final weights were not recorded in every run",
        'record them at the end, with probe.digest("weights", model.parameters())',
    ),
    "weights-repeat": Reason("{runs} runs gave the same weights, to the bit"),
    "weights-depend-on-the-order-of-arrival": Reason(
        "{runs} runs with one seed gave different weights: gradients were applied in the order in which they came, and that "
        "depends on the speed of each rank in each moment",
        "serve ranks in a fixed order, or step synchronously; or keep the order of arrival with the run, so that it can be "
        "played back",
    ),
    "weights-differ-in-one-order": Reason(
        "{runs} runs with one seed gave different weights, although the ranks' gradients came in the same order",
        "seed whatever is random on each rank, and use deterministic kernels (torch.use_deterministic_algorithms)",
    ),
    "weights-differ": Reason(
        "{runs} runs with one seed gave different weights",
        "seed whatever is random on each rank, and use deterministic kernels (torch.use_deterministic_algorithms)",
    ),
    # stale-gradients
    "versions-not-recorded": Reason(
        "the program did not record which version of the weights its gradients were computed on",
        'record probe.scalar("version_pulled", …) and probe.scalar("version_pushed", …) in each step of each rank',
    ),
    "versions-run-backwards": Reason(
        "some gradients were applied to an earlier version than they were computed on, which cannot be",
        "count versions in one place, at the server: one more with each update",
    ),
    "every-gradient-is-fresh": Reason("every gradient was applied to the very weights that it was computed on"),
    "how-stale": Reason("gradients are {mean:.2g} versions old on average, {most} at most"),
    "stale-and-no-loss-recorded": Reason(
        "{stale}, but no loss was recorded to see what comes of it", 'record probe.scalar("loss_local", …) in each step'
    ),
    "synchronous-run-does-not-learn": Reason(
        "the synchronous run of equal settings does not learn either: staleness is not what is wrong, or not all",
        "lower the learning rate, or train longer, until the synchronous run learns; then compare",
    ),
    "stale-gradients-do-harm": Reason(
        "{stale}, and the mean loss of the last gradients is {loss:.3g} where a synchronous run of the same learning rate "
        "and momentum has {sync:.3g} after as many samples",
        "lower the learning rate below 2·sin(π/(2(2τ+1)))/λ for a staleness τ and a curvature λ, and drop the momentum: not "
        "waiting acts like momentum already; or bound the staleness; or average the gradients synchronously",
    ),
    "stale-gradients-do-harm-beyond-the-limit": Reason(
        "{stale}, and the mean loss of the last gradients is {loss:.3g} where a synchronous run of the same learning rate "
        "and momentum has {sync:.3g} after as many samples; lr·curvature is {times:.2g} times the limit for a delay of "
        "{delay}",
        "lower the learning rate below 2·sin(π/(2(2τ+1)))/λ for a staleness τ and a curvature λ, and drop the momentum: not "
        "waiting acts like momentum already; or bound the staleness; or average the gradients synchronously",
    ),
    "stale-gradients-do-no-harm": Reason(
        "{stale}, and it does no harm: the mean loss of the last gradients is {loss:.3g}, and {sync:.3g} in a synchronous "
        "run of the same learning rate and momentum over as many samples"
    ),
    "harm-hidden-by-noise": Reason(
        "{stale}; the mean loss of the last gradients is {loss:.3g}, in the synchronous run {sync:.3g}: too close for the "
        "noise of a few batches to tell harm from none",
        "train longer, so that the two ends are told apart",
    ),
    "unstable-by-the-delay-alone": Reason(
        "{stale}, and the loss does not fall; lr·curvature is {times:.2g} times the limit for a delay of {delay}, "
        "and below the limit for fresh gradients",
        "lower the learning rate below 2·sin(π/(2(2τ+1)))/λ for a staleness τ and a curvature λ, and drop the momentum: not "
        "waiting acts like momentum already; or bound the staleness; or average the gradients synchronously",
    ),
    "loss-falls-and-no-synchronous-run": Reason(
        "{stale}; the loss falls, but what a synchronous run would make of it is not on record",
        "add a synchronous run with the same settings and samples in the role sync (--set compare=yes)",
        "run the same synchronously over as many samples, and compare the losses",
    ),
    "loss-does-not-fall-and-no-synchronous-run": Reason(
        "{stale}; the loss does not fall, but what a synchronous run would make of it is not on record",
        "add a synchronous run with the same settings and samples in the role sync (--set compare=yes)",
        "run the same synchronously over as many samples, and compare the losses",
    ),
    # straggler
    "communication-not-timed": Reason(
        "the program did not time its communication",
        'time it with probe.span("all_reduce", "comm"), or in the callback of the collective with probe.add_span',
    ),
    "too-few-steps-of-a-rank": Reason(
        "{steps:plural step of a rank is/steps of a rank are} too few to tell a slow rank from chance",
        "run {enough} steps or more",
    ),
    "threads-outnumber-cores-and-hide-who-is-slow": Reason(
        "more threads than cores wanted to run: that alone makes some ranks slower than others, and hides who is",
        "stop what else runs there, use no more ranks than cores, and run longer",
    ),
    "slow-steps-strike-by-turns": Reason("slow steps strike ranks by turns, outside of the communication that was timed"),
    "no-rank-is-slow": Reason(
        "no rank takes much longer for a step than the others, outside of the communication that was timed"
    ),
    "takes-longer": Reason("rank {rank} takes {times:.2g} times as long for a step as the others"),
    "takes-longer-from-a-step-on": Reason(
        "from step {begin} on rank {rank} takes {times:.2g} times as long for a step as the others"
    ),
    "takes-longer-in-some-steps": Reason(
        "rank {rank} takes {times:.2g} times as long for a step as the others in {slow} of {steps:plural step/steps}"
    ),
    "slow-rank-and-nobody-waits": Reason("{told}, and nobody waits for it"),
    "rank-slow-perhaps-by-chance": Reason(
        "{told}, but not in every step, or not for long enough: what else runs on the machine could do that",
        "stop what else runs there, use no more ranks than cores, and run longer",
    ),
    "slow-rank-is-waited-for-in-part": Reason(
        "{told}, and the others spend only part of that time in communication", "stop what else runs there, and run longer"
    ),
    "others-wait-for-a-slow-rank": Reason(
        "{told}, and the others wait for it",
        "find out why it is slow (another job, heat, a worse link, more data) or take it out; give it a smaller batch; or "
        "do not wait, at a learning rate that is low enough for stale gradients",
    ),
}
