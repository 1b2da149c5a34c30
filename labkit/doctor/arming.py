"""What makes a process group also tells the doctor that this process is a rank. Loads nothing until it does.

In processes that a watched script starts this is imported while torch is being loaded.
"""

from __future__ import annotations

import functools
import sys
from typing import Any


def arm(module: Any) -> None:
    """Replace `init_process_group` by what makes a group and then watches this process, if nothing watches it yet.

    Args:
        module: torch's that defines it.
    """
    original = module.init_process_group
    if hasattr(original, "_labkit_armed"):
        return

    @functools.wraps(original)
    def init_process_group(*args: Any, **kwargs: Any) -> Any:
        given = original(*args, **kwargs)
        try:
            from .children import joined

            joined()
        except Exception as error:
            print(f"labkit doctor: rank {module.get_rank()} is not watched: {error!r}", file=sys.stderr)
        return given

    vars(init_process_group)["_labkit_armed"] = True
    module.init_process_group = init_process_group
    for name in ("torch.distributed", "torch.distributed.device_mesh"):
        other: Any = sys.modules.get(name)
        if getattr(other, "init_process_group", None) is original:
            other.init_process_group = init_process_group
