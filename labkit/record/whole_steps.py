"""Steps that are written a few at a time, where a line for each would cost too much."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import msgspec

AT_ONCE, AT_ONCE_NS = 16, 200_000_000
"""Steps that are written together at most, and for how long the first of them may wait."""


class Told(NamedTuple):
    """What a step holds: see `schema.Step`. Scalars that are None and counts that are 0 are left out."""

    spans: list[tuple[str, str, int, int]]
    scalars: dict[str, float | None]
    counts: dict[str, int]
    ids: dict[str, list[int]] | None = None
    digests: dict[str, list[int]] | None = None


WholeStep = tuple[int, int, int, int, Callable[[Any], Told], Any]
"""Number, epoch, start and end in ns, and what says what it holds: see `Probe.whole_step`."""


class WholeSteps:
    """What waits to be written.

    Attributes:
        waiting: in order.
    """

    def __init__(self) -> None:
        self.waiting: list[WholeStep] = []
        self._encode = msgspec.json.Encoder().encode

    def add(self, step: WholeStep) -> bool:
        """Have a step wait; whether it is time to write."""
        self.waiting.append(step)
        return len(self.waiting) >= AT_ONCE or step[3] - self.waiting[0][2] > AT_ONCE_NS

    def taken(self) -> bytes:
        """The lines of all that wait, which then do no more."""
        waiting, self.waiting = self.waiting, []
        return b"".join([self._encode(_line(*step)) + b"\n" for step in waiting])


def _line(number: int, epoch: int, start_ns: int, end_ns: int, tell: Callable[[Any], Told], seen: Any) -> dict[str, Any]:
    spans, scalars, counts, ids, digests = tell(seen)
    known = {name: value if value - value == 0 else repr(value) for name, value in scalars.items() if value is not None}
    more = {"spans": spans, "ids": ids, "digests": digests}
    return {
        "kind": "step",
        "step": number,
        "epoch": epoch,
        "start_ns": start_ns,
        "end_ns": end_ns,
        "scalars": known,
        "counts": {name: value for name, value in counts.items() if value},
        **{name: of for name, of in more.items() if of},
    }
