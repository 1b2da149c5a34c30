"""Watch a GradScaler: when it is asked for a step, and at which scale."""

from __future__ import annotations

from typing import Any

from ..record.probe import Probe


class ScalerWatch:
    """Record in each step that a scaler was asked for an optimizer's step, and its scale then.

    *Called on* a rank; no collective. Written: the count scaler_steps and the scalar scale. Whether the scaler takes the
    step or leaves it out, the optimizer's own watch sees: a step that is left out is no update.

    Args:
        scaler: any `torch.amp.GradScaler`; its `step` passes through here until `close`.
        probe: writes into the step that is open.
    """

    def __init__(self, scaler: Any, probe: Probe) -> None:
        self._scaler = scaler
        asked = scaler.step

        def step(optimizer: Any, *args: Any, **kwargs: Any) -> Any:
            if probe.in_step:
                probe.count("scaler_steps")
                probe.scalar("scale", scaler.get_scale())
            return asked(optimizer, *args, **kwargs)

        scaler.step = step

    def close(self) -> None:
        """Stop watching."""
        vars(self._scaler).pop("step", None)


def watch_scaler(scaler: Any, probe: Probe) -> ScalerWatch:
    """Begin to record when a GradScaler is asked for a step. See `ScalerWatch`."""
    return ScalerWatch(scaler, probe)
