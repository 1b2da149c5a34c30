"""Help with an exercise, in the order in which it is asked for: where to begin, three hints, one solution."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class Help:
    """What stands ready for a learner.

    Attributes:
        start: the code to begin with. It runs, and the check refuses it with a sentence.
        hints: three, each saying more than the one before.
        solution: code that passes the check, whole.
        note: what to think about once it is solved; empty for nothing.
    """

    start: str
    hints: tuple[str, str, str]
    solution: str
    note: str = ""
