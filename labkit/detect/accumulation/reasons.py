"""What the questions about accumulated gradients say."""

from __future__ import annotations

from ..catalogue import Reason

_LAST_WINDOW = (
    "make an update after the last batch of an epoch as well: if (i + 1) % K == 0 or i + 1 == len(loader); and divide by "
    "the number of micro-batches that are really in the window"
)

REASONS = {
    # old-gradients
    "gradients-not-watched": Reason(
        "nobody looked at the gradients between updates", "run the script under `labkit doctor`, which looks at them"
    ),
    "too-few-updates-for-gradients": Reason(
        "{updates:plural update/updates} cannot show how gradients are cleared", "run 10 updates or more"
    ),
    "gradients-never-cleared": Reason(
        "gradients are not cleared between {updates:plural update/updates}: each update uses all gradients since the start",
        "call optimizer.zero_grad() once for each update, before its first backward pass",
    ),
    "window-over-two-epochs": Reason(
        "{times:plural time/times} the last micro-batches of an epoch were left in the gradients and joined the first "
        "update of the next epoch, which is so many micro-batches too large",
        _LAST_WINDOW,
    ),
    "micro-batches-cleared": Reason(
        "each update is made after {passes} backward passes, and the gradients of all but the last are cleared before it: "
        "if they are micro-batches of one update, only the last one counts",
        "call optimizer.zero_grad() once an update, before the first micro-batch; where each pass's gradients are read and "
        "kept by the script itself (one for each task or sample), nothing is wrong",
    ),
    "last-window-dropped": Reason(
        "{unused:,} of {passes:plural backward pass/backward passes} end in no update: what is left of an epoch after the "
        "last whole window is computed and cleared",
        _LAST_WINDOW,
    ),
    "gradients-of-their-own-batches": Reason("each update uses the gradients of its own batches"),
}
