"""How a loss is put together, read from its autograd graph: which means and sums, of how many targets, times what.

Only what lies between the scalar that backward is called on and the first reduction is read. Nothing is computed but counts
of targets, and the graph is not changed.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

MOST_NODES, MOST_TERMS = 128, 64

MEAN, SUM, OTHER = "mean", "sum", "other"

_PASSING = ("ToCopy", "Clone", "Alias", "View", "Squeeze", "Unsqueeze", "Reshape", "UnsafeView", "Expand", "Contiguous")
_WITH_REDUCTION = (
    "NllLoss",
    "MseLoss",
    "SmoothL1Loss",
    "HuberLoss",
    "BinaryCrossEntropy",
    "SoftMarginLoss",
    "MultiMarginLoss",
    "MultilabelMarginLoss",
    "KlDiv",
    "Ctc",
)
_REDUCTIONS = ("none", MEAN, SUM)


@dataclass(frozen=True)
class Term:
    """One reduction that a loss is made of.

    Attributes:
        kind: MEAN or SUM over targets; OTHER for what cannot be told.
        factor: what it is multiplied by.
        targets: how many it is taken over, those that are left out not counted; 0 where that cannot be told.
        name: of the operation.
        divisors: numbers that it is divided by, outermost first.
    """

    kind: str
    factor: float
    targets: int = 0
    name: str = ""
    divisors: tuple[float, ...] = ()

    @property
    def share(self) -> float:
        """The weight of all its targets together: 1 for a mean that nothing multiplies."""
        return self.factor * (self.targets if self.kind == SUM else 1)


def terms_of(root: Any, *, count: bool = True) -> list[Term]:
    """The reductions of a loss. *Called on* a rank, before backward frees the graph.

    Args:
        root: the loss's grad_fn.
        count: whether numbers may be read that lie on a GPU, which waits for it.
    """
    return list(_terms(root, count))


def _terms(root: Any, count: bool) -> Iterator[Term]:
    stack: list[tuple[Any, float, tuple[float, ...]]] = [(root, 1.0, ())]
    for _ in range(MOST_NODES):
        if not stack:
            return
        node, factor, divisors = stack.pop()
        name = _name(node)
        smoothed = _smoothed(node, name)
        if smoothed is not None:
            yield _leaf(smoothed, _name(smoothed), factor, divisors, count)
            continue
        below = _below(node, name, factor, divisors, count)
        if below is None:
            yield _leaf(node, name, factor, divisors, count)
        else:
            stack.extend(reversed(below))
    yield Term(OTHER, math.nan, name="too long")


def _name(node: Any) -> str:
    """NllLoss of NllLossBackward0, NllLoss2DBackward0 and the like."""
    return node.name().rpartition("::")[2].partition("Backward")[0]


def _below(node: Any, name: str, factor: float, divisors: tuple[float, ...], count: bool) -> list[Any] | None:
    """What a node passes its gradient on to, with which factor; None where it is a reduction, or not known."""
    parents = [parent for parent, _ in node.next_functions if parent is not None]
    if not parents or not _is_scalar(node, name):
        return None
    if name in ("Mul", "Div") and len(parents) == 1:
        number = _number(node, count)
        if number is None or (name == "Div" and number == 0):
            return None
        if name == "Mul":
            return [(parents[0], factor * number, divisors)]
        return [(parents[0], factor / number, (*divisors, number))]
    if name in ("Add", "Sub", "Rsub"):
        return _of_sum(node, name, factor, divisors)
    if name == "Neg":
        return [(parents[0], -factor, divisors)]
    if name in ("Mean", "Sum") and _size(node) == 1:
        return [(parents[0], factor, divisors)]
    if name in ("Mean", "Sum") and _name(parents[0]) == "Stack" and len(parents) == 1:
        return _of_stack(parents[0], factor / _size(node) if name == "Mean" else factor, divisors)
    if any(name.startswith(passing) for passing in _PASSING):
        return [(parents[0], factor, divisors)]
    return None


def _of_sum(node: Any, name: str, factor: float, divisors: tuple[float, ...]) -> list[Any]:
    alpha = getattr(node, "_saved_alpha", 1)
    alpha = float(alpha) if isinstance(alpha, (int, float)) else 1.0
    second = -alpha if name == "Sub" else alpha
    signs = (-1.0, 1.0) if name == "Rsub" else (1.0, second)
    given = zip(node.next_functions, signs, strict=False)
    return [(parent, factor * sign, divisors) for (parent, _), sign in given if parent is not None]


def _of_stack(stack: Any, factor: float, divisors: tuple[float, ...]) -> list[Any] | None:
    parts = [part for part, _ in stack.next_functions if part is not None]
    if len(parts) > MOST_TERMS or not all(_is_reduction(part) for part in parts):
        return None
    return [(part, factor, divisors) for part in parts]


def _is_reduction(node: Any) -> bool:
    name = _name(node)
    return name in ("Mean", "Sum", "Mul", "Div", "Add") or name.startswith(_WITH_REDUCTION)


def _is_scalar(node: Any, name: str) -> bool:
    """Whether what a node gives is one number, as far as the node itself can tell: an elementwise one cannot."""
    saved = [getattr(node, at, None) for at in ("_saved_self", "_saved_other", "_saved_result")]
    return all(getattr(tensor, "numel", lambda: 1)() == 1 for tensor in saved if hasattr(tensor, "numel"))


def _number(node: Any, count: bool) -> float | None:
    """The number that a node multiplies or divides by; None where it is no single number that is known."""
    for at in ("_saved_other", "_saved_self"):
        saved = getattr(node, at, None)
        if saved is None:
            continue
        if isinstance(saved, (int, float)):
            return float(saved)
        if hasattr(saved, "numel") and saved.numel() == 1 and (count or saved.device.type == "cpu"):
            return float(saved)
    return None


def _size(node: Any) -> int:
    sizes = getattr(node, "_saved_self_sym_sizes", None)
    return math.prod(int(size) for size in sizes) if sizes is not None else 0


def _smoothed(node: Any, name: str) -> Any:
    """The loss that label smoothing wraps: (1 - e) of it plus e / C of the sum over classes; None for what is none."""
    if name != "Add" or len(node.next_functions) != 2:
        return None
    first, second = (parent for parent, _ in node.next_functions)
    if first is None or second is None or {_name(first), _name(second)} != {"Mul"}:
        return None
    inner = first.next_functions[0][0]
    kept, spread = (getattr(one, "_saved_other", None) for one in (first, second))
    if inner is None or not _name(inner).startswith("NllLoss"):
        return None
    if not (isinstance(kept, float) and isinstance(spread, float)) or not (0 < kept < 1 and spread > 0):
        return None
    classes = (1 - kept) / spread
    return inner if abs(classes - round(classes)) < 1e-6 * classes and round(classes) > 1 else None


def _leaf(node: Any, name: str, factor: float, divisors: tuple[float, ...], count: bool) -> Term:
    if name in ("Mean", "Sum"):
        kind = MEAN if name == "Mean" else SUM
        return Term(kind, factor * _within(node, count), _counted(node, count), name.lower(), divisors)
    if name.startswith(_WITH_REDUCTION):
        reduction = getattr(node, "_saved_reduction", None)
        if reduction in (1, 2):
            return Term(_REDUCTIONS[reduction], factor, _of_loss(node, name, count), name, divisors)
    return Term(OTHER, factor, 0, name, divisors)


def _within(node: Any, count: bool) -> float:
    """The single numbers that each element is multiplied or divided by before it is added to the others."""
    factor, below = 1.0, next(iter(_parents(node)), None)
    while below is not None and _name(below) in ("Mul", "Div") and len(_parents(below)) == 1:
        number = _number(below, count)
        if number is None or number == 0:
            break
        factor = factor * number if _name(below) == "Mul" else factor / number
        below = _parents(below)[0]
    return factor


def _of_loss(node: Any, name: str, count: bool) -> int:
    """Targets of torch's own losses; those of a class that is ignored do not count."""
    if name.startswith("NllLoss"):
        total = getattr(node, "_saved_total_weight", None)
        if getattr(node, "_saved_weight", None) is None and total is not None and (count or total.device.type == "cpu"):
            return round(float(total))
        return _not_ignored(node, count)
    target = getattr(node, "_saved_target", None)
    return int(target.numel()) if target is not None else 0


def _not_ignored(node: Any, count: bool) -> int:
    target, ignored = getattr(node, "_saved_target", None), getattr(node, "_saved_ignore_index", None)
    if target is None or ignored is None or not (count or target.device.type == "cpu"):
        return 0
    ignored = int(ignored)
    ignored = ignored - 2**64 if ignored >= 2**63 else ignored  # the graph gives it without its sign
    return int((target != ignored).sum())


def _counted(node: Any, count: bool) -> int:
    """Elements that a mean or a sum is taken over. In a sum those that a mask sets to 0 do not count."""
    size = _size(node)
    if _name(node) == "Mean":
        return size
    below = node.next_functions[0][0]
    for _ in range(8):
        if below is None:
            return size
        name = _name(below)
        if name == "Mul":
            mask = getattr(below, "_saved_other", None)
            mask = mask if mask is not None else getattr(below, "_saved_self", None)
            if mask is not None and mask.numel() == size and len(_parents(below)) == 1:
                return int(mask.count_nonzero()) if count or mask.device.type == "cpu" else 0
            return size
        if name.startswith("NllLoss"):
            return _not_ignored(below, count) or size
        if not any(name.startswith(passing) for passing in _PASSING):
            return size
        below = next(iter(_parents(below)), None)
    return size


def _parents(node: Any) -> list[Any]:
    return [parent for parent, _ in node.next_functions if parent is not None]
