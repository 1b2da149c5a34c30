"""What the doctor saw of a resume: the first step of an optimizer after a load, as one rank noted it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from ...record.schema import Event, Run

WHOLE = 0.9
"""Share of an optimizer's weights from which on a load is one of the whole model."""


@dataclass(frozen=True)
class Resumed:
    """One of them.

    Attributes:
        step: of the record in which the optimizer went on.
        fields: what was noted.
        reads_counter: whether the source takes a counter out of the file.
        written_again: whether this run writes checkpoints to the same path later.
    """

    step: int
    fields: Mapping[str, Any]
    reads_counter: bool
    written_again: bool

    @property
    def where(self) -> str | None:
        """Where the file was loaded."""
        return str(self.fields["where"]) or None

    @property
    def optimizer_where(self) -> str | None:
        """Where the optimizer was given its state; where the file was loaded, if nowhere."""
        return str(self.fields["optimizer_where"]) or self.where

    @property
    def load_where(self) -> str | None:
        """Where the module was given its state; where the file was loaded, if nowhere."""
        return str(self.fields["load_where"]) or self.where

    @property
    def from_file(self) -> bool:
        """Whether what was loaded came from a file that is known."""
        return int(self.fields["file"]) >= 0

    @property
    def made_here(self) -> bool:
        """Whether this process saved that file."""
        return int(self.fields["made_step"]) >= 0

    @property
    def whole_model(self) -> bool:
        """Whether all the optimizer's weights came from the file: no new head, no other shapes."""
        return float(self.fields["weights_loaded"]) >= WHOLE and not float(self.fields["weights_missing"])

    @cached_property
    def goes_on(self) -> bool:
        """Whether this is surely a resume, and no start from weights: helpers were given their state, or the optimizer
        has the settings of the one in the file and the script counts on from it or writes the file again."""
        fields = self.fields
        if fields["schedule_given"] or fields["scaler_given"] or fields["optimizer_given"]:
            return True
        if fields["file_optimizer"]:
            return bool(fields["same_settings"]) and (self.reads_counter or self.written_again or self.made_here)
        return self.reads_counter and (self.written_again or self.made_here)


def resumes(run: Run, rank: int = 0) -> list[Resumed]:
    """What a rank noted, in order."""
    events = run.ranks[rank].events
    loads = [event for event in events if event.name == "torch_load"]
    return [_resumed(event, loads, events) for event in events if event.name == "resumed"]


def _resumed(event: Event, loads: list[Event], events: tuple[Event, ...]) -> Resumed:
    number, path = int(event.fields["file"]), str(event.fields["path"])
    of_file = loads[number] if 0 <= number < len(loads) else None
    again = any(
        later.name == "torch_save" and later.fields["path"] == path and later.time_ns > event.time_ns for later in events
    )
    return Resumed(event.step, event.fields, bool(of_file and of_file.fields["reads_counter"]), bool(path) and again)
