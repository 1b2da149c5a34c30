"""An opened lab as exercises and the panel know it: what they may ask of `labkit.Lab`, which they cannot import."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    from ..detect.verdict import Verdicts
    from ..record.quantity import Quantity
    from ..record.schema import Record
    from .spec import LabSpec


class OpenedLab(Protocol):
    """A lab that can be run and asked; `labkit.Lab` says what its methods take and raise."""

    @property
    def spec(self) -> LabSpec:
        """What the lab is."""
        ...

    def run(self, variant: str | Callable[..., Iterable] | None = None, **how: Any) -> Record:
        """Run a variant, or the learner's own function, and what its verdict needs."""
        ...

    def judge(self, record: Record) -> Verdicts:
        """Ask a record the lab's questions."""
        ...

    def measures(self, record: Record) -> dict[str, Quantity]:
        """The record's measures, by name."""
        ...

    def try_out(self, program: Callable[..., Any], task: Any, *, seed: int = 0, deadline_s: float = 20.0) -> Any:
        """Run a program on one rank, in a process of its own, and return what it returns."""
        ...

    def try_on_ranks(
        self, program: Callable[..., Any], task: Any, *, ranks: int, seed: int = 0, deadline_s: float = 60.0
    ) -> list[Any]:
        """Run a program on a group of ranks, and return what each returns."""
        ...
