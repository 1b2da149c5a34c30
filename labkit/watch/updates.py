"""Watch whether a program trains: count the updates of weights, whoever makes them."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from torch.optim.optimizer import Optimizer, register_optimizer_step_post_hook

from ..record.probe import Probe


@contextmanager
def watch_updates(probe: Probe) -> Iterator[None]:
    """Count in each step of the probe (`updates`) the steps that any optimizer of this process makes while this is open.

    A step without the count is one in which none was made: so a loop that trains nothing is known from what it did.
    An update by hand, without an optimizer, is not seen. *Called on* a rank, before the first step. No collective.
    """
    probe.declare(watches_updates=True)

    def count(optimizer: Optimizer, args: Any, kwargs: Any) -> None:
        if probe.in_step:
            probe.count("updates")

    hook = register_optimizer_step_post_hook(count)
    try:
        yield
    finally:
        hook.remove()
