"""The doctor as a callback: of transformers' Trainer and of Lightning's, whoever started the program.

With Accelerate, or a loop of one's own, a block does the same: `with labkit.doctor.watch() as seen: train()`.
The frameworks are imported when a callback of theirs is made.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

from .inside import Watched, watch


class _Block:
    """A watched block that begins and ends at a framework's calls.

    Attributes:
        seen: what was watched last; None before.
    """

    def __init__(self, record: Path | str | None, steps: int | None, report: bool) -> None:
        self._how, self._report = {"record": record, "steps": steps}, report
        self._open = contextlib.ExitStack()
        self._watches = False
        self.seen: Watched | None = None

    def begin(self) -> None:
        """Watch from now on, if it does not yet."""
        if not self._watches:
            self.seen = self._open.enter_context(watch(**self._how))
            self._watches = True

    def end(self, error: BaseException | None = None) -> None:
        """Watch no more, and say what was found. *Called on* every rank; rank 0 says it."""
        if not self._watches:
            return
        self._watches = False
        with contextlib.suppress(*([BaseException] if error is not None else [])):  # it is the framework's to raise it
            self._open.__exit__(type(error) if error is not None else None, error, None)
        if self._report and self.seen is not None and self.seen.diagnosis is not None:
            print(self.seen.diagnosis)


def for_trainer(*, record: Path | str | None = None, report: bool = True) -> Any:
    """A callback for transformers: `Trainer(…, callbacks=[labkit.doctor.for_trainer()])`. *Called on* every rank.

    Give it to Trainer as it is made: then what wraps the model is seen too. `seen` of it is as `watch` gives it.

    Args:
        record: as for `watch`.
        report: whether rank 0 prints the diagnosis when training ends.

    Raises:
        ImportError: transformers is not installed.
    """
    from transformers import TrainerCallback

    class DoctorCallback(TrainerCallback):
        """Watches a Trainer's training."""

        def __init__(self) -> None:
            self._block = _Block(record, None, report)

        @property
        def seen(self) -> Watched | None:
            return self._block.seen

        def on_init_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self._block.begin()

        def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self._block.begin()

        def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
            self._block.end()

    return DoctorCallback()


def for_lightning(*, record: Path | str | None = None, report: bool = True) -> Any:
    """A callback for Lightning: `Trainer(…, callbacks=[labkit.doctor.for_lightning()])`. *Called on* every rank.

    `seen` of it is as `watch` gives it.

    Args:
        record: as for `watch`.
        report: whether rank 0 prints the diagnosis when fitting ends.

    Raises:
        ImportError: neither lightning nor pytorch_lightning is installed.
    """
    try:
        from lightning.pytorch.callbacks import Callback
    except ImportError:
        from pytorch_lightning.callbacks import Callback

    class DoctorCallback(Callback):  # pyright: ignore[reportGeneralTypeIssues] - of one of two packages
        """Watches a Trainer's fit."""

        def __init__(self) -> None:
            self._block = _Block(record, None, report)

        @property
        def seen(self) -> Watched | None:
            return self._block.seen

        def setup(self, trainer: Any, pl_module: Any, stage: str) -> None:
            if stage == "fit":
                self._block.begin()

        def on_exception(self, trainer: Any, pl_module: Any, exception: BaseException) -> None:
            self._block.end(exception)

        def teardown(self, trainer: Any, pl_module: Any, stage: str) -> None:
            if stage == "fit":
                self._block.end()

    return DoctorCallback()
