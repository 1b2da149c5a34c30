"""What all lines of a rank's file come to together."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from .schema import Digest, End, Event, Head, Line, RankLog, Seen, Step

Take = Callable[[Line], Line]
"""Moves the samples of a line elsewhere."""


def rank_log(lines: Iterable[Line], as_steps: Callable[[list[Step]], tuple[Step, ...]]) -> RankLog:
    """All that one rank wrote. There is a head among the lines.

    Args:
        as_steps: joins the steps to their samples, once all lines were taken in.
    """
    head: Head | None = None
    steps: list[Step] = []
    events: list[Event] = []
    seen: list[Seen] = []
    digests: dict[str, str] = {}
    finished = False
    for line in lines:
        match line:
            case Head():
                head = line
            case Step():
                steps.append(line)
            case Event():
                events.append(line)
            case Seen():
                seen.append(line)
            case Digest():
                digests[line.name] = line.value
            case End():
                finished = True
    assert head is not None, "a file without a head is refused"
    return RankLog(head, as_steps(steps), tuple(events), tuple(seen), digests, finished)
