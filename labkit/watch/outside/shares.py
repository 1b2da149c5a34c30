"""Which share of the data a rank is to read: ranks that hold one model together (tensor parallelism) read the same."""

from __future__ import annotations

import contextlib
from collections.abc import Iterable
from typing import Any


def share_of_data(models: Iterable[Any]) -> str | None:
    """A name of the share, by how the models' weights are cut over ranks; None where each rank has one of its own, or this
    cannot be told.

    Of a mesh of ranks those along the axis that gradients are reduced over read different data. Where weights are cut
    without such an axis, all ranks of the mesh hold one model together.
    """
    import torch.distributed as dist

    for model in models:
        cut = next((p for p in model.parameters() if hasattr(p, "device_mesh")), None)
        if cut is None:
            continue
        with contextlib.suppress(Exception):  # of another version of torch: then nothing is said
            info = _mesh_of_data(model)
            if info is None:
                return f"ranks from {int(cut.device_mesh.mesh.min())} on"
            own, others = info
            return own if others < dist.get_world_size() else None
    return None


def _mesh_of_data(model: Any) -> tuple[str, int] | None:
    """(this rank's place among those that read different data, how many they are) where the model is fully sharded."""
    from torch.distributed.fsdp import FSDPModule

    for module in model.modules():
        if not isinstance(module, FSDPModule):
            continue
        group = module._get_fsdp_state()._fsdp_param_group
        if group is None:
            continue
        info = group.mesh_info
        places = [getattr(info, name) for name in ("replicate_mesh_rank", "shard_mesh_rank") if hasattr(info, name)]
        sizes = [getattr(info, name) for name in ("replicate_mesh_size", "shard_mesh_size") if hasattr(info, name)]
        count = 1
        for size in sizes:
            count *= size
        return "-".join(map(str, places)), count
    return None
