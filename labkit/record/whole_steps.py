"""Steps that are written a few at a time, where a line for each would cost too much."""

from __future__ import annotations

from typing import Any

import msgspec

AT_ONCE, AT_ONCE_NS = 16, 200_000_000
"""Steps that are written together at most, and for how long the first of them may wait."""

WholeStep = tuple[int, int, int, int, list[Any], dict[str, float | None], dict[str, int], dict[str, list[int]]]
"""Number, epoch, start and end in ns, spans, scalars, counts, ids: see `Probe.whole_step`."""


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
        return b"".join(self._encode(_line(step)) + b"\n" for step in waiting)


def _line(whole: WholeStep) -> dict[str, Any]:
    number, epoch, start_ns, end_ns, spans, scalars, counts, ids = whole
    line: dict[str, Any] = {"kind": "step", "step": number, "epoch": epoch, "start_ns": start_ns, "end_ns": end_ns}
    numbers = {name: value for name, value in scalars.items() if value is not None}
    line["scalars"] = {name: value if value - value == 0 else repr(value) for name, value in numbers.items()}
    line["counts"] = {name: value for name, value in counts.items() if value}
    line |= {"spans": spans} if spans else {}
    line |= {"ids": ids} if any(ids.values()) else {}
    return line
