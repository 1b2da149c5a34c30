"""What the questions about the source share: the events that reading it left, and how many files were read."""

from __future__ import annotations

from ...record.quantity import Quantity
from ...record.schema import Event, Run

READ = "read in the source"


def read_in_the_source(run: Run) -> tuple[tuple[Event, ...], dict[str, Quantity]]:
    """(events of rank 0, the evidence that files were read); without evidence none was read."""
    events = run.ranks[0].events
    files = next((int(event.fields["files"]) for event in events if event.name == "source_read"), 0)
    return events, ({"files": Quantity(files, "", READ)} if files else {})
