"""What the questions about collectives say."""

from __future__ import annotations

from ..catalogue import Reason

_SAME_ON_ALL = (
    "make every rank call the same collectives in the same order and equally often: no collective in a branch that only "
    "some ranks take, and no loop that ends earlier on some (uneven data: drop_last, or the Join context)"
)

REASONS = {
    # barriers
    "one-rank-has-no-barrier": Reason("no barriers of several ranks were counted", "run the script on two ranks or more"),
    "too-few-updates-for-barriers": Reason(
        "{updates:plural update/updates} cannot show what every step holds", "run 8 or more"
    ),
    "no-barrier-in-every-step": Reason("barriers are not a part of every step"),
    "barrier-in-every-step": Reason(
        "the script calls {times:.3g} barriers an update: each makes all ranks wait for the slowest one, and nothing needs "
        "it",
        "leave the barrier out of the loop: the all-reduce of the gradients keeps ranks together; to time a step, "
        "synchronise the device instead",
    ),
    # where a rank stands: a part of a cause
    "stand-ended": Reason("rank {rank} has ended"),
    "stand-in-collective": Reason("rank {rank} waits in {operation} ({line})"),
    "stand-elsewhere": Reason("rank {rank} is in {function} ({line})"),
    "stand-raised": Reason("rank {rank} raised {error} ({line})"),
    "stand-died": Reason("the process of rank {rank} was ended by {error} in {operation} ({line})"),
    "stand-gave-up": Reason("rank {rank} waited in {operation} ({line}) until it failed: {error}"),
    # stands-still
    "one-rank-meets-nobody": Reason("one rank has nobody to wait for", "run with 2 ranks or more"),
    "every-rank-came-to-its-end": Reason("every rank came to its end"),
    "not-seen-standing-still": Reason(
        "nobody watched the ranks from outside", "run the script under `labkit doctor`, which ends a run that stands still"
    ),
    "still-outside-collectives": Reason(
        "the run stood still, and no rank was in a collective: {stands}", "look at what these lines wait for"
    ),
    "ranks-left-the-others-waiting": Reason("the run hangs: {ranks:all rank/ranks} left early. {stands}", _SAME_ON_ALL),
    "ranks-never-came": Reason("the run hangs: {ranks:all rank/ranks} never came to the collective. {stands}", _SAME_ON_ALL),
    "ranks-failed-before": Reason(
        "{ranks:all rank/ranks} ended with an error of its own, and the others wait for it. {stands}",
        "look at that error first: what the others say of connections or time-outs follows from it",
    ),
    "ranks-give-different-tensors": Reason(
        "the run hangs: ranks are in the same collective with tensors that do not fit together. {stands}",
        "give tensors of one size and type on all ranks: pad uneven batches, or exchange the sizes first",
    ),
    "collectives-do-not-match": Reason(
        "ranks give different things to the same collective, call {call:,} of theirs, and it returns all the same: the "
        "numbers of one format are read as those of another, or two collectives take each other's place",
        "let all ranks call the same collectives in the same order, with tensors of one size and type",
    ),
    "ranks-wait-for-each-other": Reason(
        "the run hangs: each rank waits for another one to send or to receive. {stands}",
        "let one side send while the other receives: order the calls by rank, or use batch_isend_irecv",
    ),
    "ranks-in-different-collectives": Reason("the run hangs: ranks wait in different collectives. {stands}", _SAME_ON_ALL),
    "ranks-out-of-step": Reason(
        "the run hangs: all ranks wait in the same line, and one has called {most:,} collectives by then, another "
        "{least:,}. {stands}",
        _SAME_ON_ALL,
    ),
    "all-in-one-collective": Reason(
        "the run stood still, and all ranks wait in the same collective: {stands}",
        "look at the network between them: which interface they use (GLOO_SOCKET_IFNAME, NCCL_SOCKET_IFNAME), and whether a "
        "firewall or another group's collective is in the way",
    ),
}
