"""Features that a script gathers from all ranks while gradients are recorded: whether its loss is computed from them.

torch.distributed.all_gather gives tensors without a gradient. A loss that compares features of all ranks then lacks the
gradient of those that came from others, and of this rank's own in the gathered part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from ...record.probe import Probe
from .patches import Patches

MOST_LOOKS, MOST_NODES = 6, 4000

_SAVED = (
    "_saved_self",
    "_saved_other",
    "_saved_mat1",
    "_saved_mat2",
    "_saved_batch1",
    "_saved_batch2",
    "_saved_x1",
    "_saved_x2",
)


@dataclass(eq=False)
class _Gathered:
    """One call: what was given, and what was given back."""

    given: Any
    back: Any
    rank: int
    ranks: int
    where: str

    def part(self, rank: int) -> Any:
        """What came from a rank, as rows."""
        part = self.back[rank] if isinstance(self.back, list) else self.back.reshape(self.ranks, -1)[rank]
        return part.detach().reshape(-1, self.given.shape[-1])


class Gathers:
    """The gathers of features of a script. *Called on* each rank."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._pending: list[_Gathered] = []
        self._looks = 0

    def attach(self, patches: Patches) -> None:
        """Nothing: others call `begun` and `backward`."""

    def let_go(self) -> None:
        """Hold no tensor any more."""
        self._pending.clear()

    def begun(self, given: Any, name: str, args: tuple, kwargs: dict[str, Any], where: str) -> None:
        """The script called a collective."""
        import torch
        import torch.distributed as dist

        if name not in ("all_gather", "all_gather_into_tensor") or self._looks >= MOST_LOOKS or len(self._pending) > 8:
            return
        back = args[0] if args else kwargs.get("tensor_list", kwargs.get("output_tensor"))
        own = args[1] if len(args) > 1 else kwargs.get("tensor", kwargs.get("input_tensor"))
        if not isinstance(own, torch.Tensor) or not own.requires_grad or not torch.is_grad_enabled():
            return
        group = args[2] if len(args) > 2 else kwargs.get("group")
        ranks = dist.get_world_size(group)
        if own.dim() >= 2 and own.shape[-1] > 1 and ranks > 1:
            self._pending.append(_Gathered(own, back, dist.get_rank(group), ranks, where))

    def backward(self, loss: Any) -> None:
        """Backward is about to be called on a loss: is it computed from what was gathered?"""
        pending, self._pending = self._pending, []
        if not pending or getattr(loss, "grad_fn", None) is None:
            return
        self._looks += 1
        saved = _saved_of(loss.grad_fn)
        for one in pending:
            own_back = isinstance(one.back, list) and bool(one.back[one.rank].requires_grad)
            rows = one.part((one.rank + 1) % one.ranks)
            self._probe.event(
                "gathered",
                where=one.where,
                used=any(_holds(tensor, rows, one.given.detach()) for tensor in saved),
                own_back=own_back,
                loss=float(loss.detach()) if loss.numel() == 1 else 0.0,
                ranks=one.ranks,
            )


def _saved_of(root: Any) -> list[Any]:
    """Tensors that the graph of a loss keeps for its backward pass."""
    stack, seen, found = [root], set(), []
    while stack and len(seen) < MOST_NODES:
        node = stack.pop()
        if node in seen:
            continue
        seen.add(node)
        for name in _SAVED:
            tensor = getattr(node, name, None)
            if tensor is not None and hasattr(tensor, "dim") and tensor.dim() >= 2:
                found.append(tensor.detach())
        stack.extend(parent for parent, _ in node.next_functions if parent is not None)
    return found


def _holds(tensor: Any, rows: Any, own: Any) -> bool:
    """Whether a tensor holds rows that came from another rank, in whatever length, and that are none of this rank's own."""
    import torch

    wanted = torch.nn.functional.normalize(rows[:2].float(), dim=1)
    mine = torch.nn.functional.normalize(own.reshape(-1, own.shape[-1]).float(), dim=1)
    if bool(((mine @ wanted.T) > 0.9999).any()):
        return False  # alike on both ranks: nothing tells whose they are
    for sides in (tensor, tensor.transpose(-1, -2)):
        if sides.shape[-1] == rows.shape[-1] and sides.dtype.is_floating_point:
            held = torch.nn.functional.normalize(sides.reshape(-1, rows.shape[-1]).float(), dim=1)
            if bool(((held @ wanted.T) > 0.99999).any(0).all()):
                return True
    return False
