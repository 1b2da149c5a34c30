"""Texts that detectors of several topics share."""

from __future__ import annotations

from .catalogue import Reason

REASONS = {
    # what follows the cause of a verdict that noise leaves open
    "other-programs-meanwhile": Reason("; other programs used {used:.1f} of {cores:plural core/cores} meanwhile"),
    # no reduction of gradients to look at
    "one-rank-reduces-nothing": Reason("one rank reduces nothing", "run with 2 ranks or more"),
    "no-ddp-module-watched": Reason("no DDP module was watched", "watch it with watch_ddp(ddp, probe, optimizer=optimizer)"),
    # a record that a detector cannot make sense of
    "own-names": Reason("{why}, so it was not counted", "{remedy}"),
    "own-names-and-more": Reason("{why}, so it was not counted", "{remedy}; {fix}"),
    "does-not-go-together": Reason("what was recorded does not go together ({said}, in {file}:{line})", "{remedy}"),
    "own-names-do-not-go-together": Reason(
        "{why}; what was recorded does not go together ({said}, in {file}:{line})", "{remedy}"
    ),
    "record-what-is-needed": Reason(
        "record what this question needs as labkit's docs/your-own-script.md lists it, or run the lab again"
    ),
    # nobody to wait for
    "one-rank-waits-for-nobody": Reason("one rank waits for nobody", "run with 2 ranks or more"),
}
