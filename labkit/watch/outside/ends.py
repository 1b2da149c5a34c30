"""How a script ends that raises: whether by a fault of its own, or because it waited for a rank that never came."""

from __future__ import annotations

import re
import traceback
from collections.abc import Iterable, Sequence

from ...record.probe import Probe
from ...record.where import short_path
from .patches import is_library

BACKWARD = ("run_backward", "_run_backward", "_engine_run_backward")
WAITS = {
    "_verify_param_shape_across_processes": "DistributedDataParallel(…), which compares shapes",
    "_sync_module_states": "DistributedDataParallel(…), which sends rank 0's weights",
    "_sync_params_and_buffers": "DistributedDataParallel(…), which sends rank 0's weights",
    "_distributed_broadcast_coalesced": "the forward pass, where DDP sends rank 0's buffers",
    "_sync_buffers": "the forward pass, where DDP sends rank 0's buffers",
    "_check_global_requires_backward_grad_sync": "the forward pass, where DDP asks whether a rank has joined",
    "init_process_group": "init_process_group",
    "new_group": "new_group",
    "destroy_process_group": "destroy_process_group",
    "wait_tensor": "a collective of a sharded tensor",
}
"""What a rank waits for that stands in a function of torch's: a collective that the script did not call by name."""

_OF_OTHERS = re.compile(
    r"connection (closed|reset|refused)|timed? ?out|broken pipe|socket|peer|gloo|nccl|heartbeat|DistNetworkError|"
    r"DistStoreError|DistBackendError",
    re.IGNORECASE,
)
"""What an error says that another rank, or the way to it, is the cause of."""


def waits_in(functions: Iterable[str]) -> str:
    """Which collective these functions, the innermost first, are in; empty where in none that is known."""
    for name in functions:
        if name in BACKWARD:
            return "backward"
        if name in WAITS:
            return WAITS[name]
    return ""


def note(probe: Probe, error: BaseException, calls: Sequence[tuple[int, str, str, str, str]]) -> None:
    """Write an event `raised`. *Called on* the rank whose script raised.

    Args:
        calls: the last collectives, as `collectives.last_calls` gives them.
    """
    frames = traceback.extract_tb(error.__traceback__)
    own = [f for f in frames if not is_library(f.filename)]
    where = f"{short_path(own[-1].filename)}:{own[-1].lineno}" if own else ""
    said = f"{type(error).__name__}: {error}"
    waits = waits_in(frame.name for frame in reversed(frames))
    if calls and calls[-1][3] == "in it":
        waits, where = calls[-1][1], calls[-1][2] or where
    elif not waits and calls and calls[-1][3] == "started" and own and frames[-1] is own[-1]:
        waits = f"wait() for {calls[-1][1]}"
    probe.event(
        "raised",
        error=type(error).__name__,
        message=str(error).strip().split("\n")[0][:200],
        where=where,
        waits_in=waits,
        of_others=bool(waits) and bool(_OF_OTHERS.search(said)),
        number=calls[-1][0] if calls else 0,
        given=calls[-1][4] if calls else "",
    )
