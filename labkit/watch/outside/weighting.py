"""How much each micro-batch weighs: what its loss is a mean or a sum of, and what it is multiplied by, at every backward.

Written into each step, a number for each call of backward: loss_kind, loss_share, loss_targets, loss_site, loss_inputs; and
once for each form of a loss the event loss_form.
"""

from __future__ import annotations

import ast
import functools
import re
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import xxhash

from ...record.probe import Probe
from ...record.where import short_path
from .losses import MEAN, SUM, Term, terms_of
from .patches import Patches, is_library

BILLIONTHS = 10**9
"""Series hold whole numbers: shares are written so many to one."""

KINDS = {"other": 0, MEAN: 1, SUM: 2}
SEVERAL = 3
MOST_FORMS = 12
_OF_A_LOSS = re.compile(r"(?i)^(?!.*(\.item\(|detach|float\(|grad)).*(loss|criterion|entropy|objective|cost)")
_MOST = 2**52


class Weighting:
    """The losses of the process, as backward is called on them. *Called on* each rank."""

    def __init__(self, probe: Probe) -> None:
        self._probe = probe
        self._inside = False
        self.before: Callable[[Any], None] = lambda loss: None
        """Called with what backward is about to be called on."""
        self._inputs = 0
        self._scaled: tuple[Any, Any] | None = None
        self._forms: set[tuple[str, int, str]] = set()

    def attach(self, patches: Patches) -> None:
        """Watch from now on; after what writes steps, so that a step is open once backward is over."""
        import torch
        from torch.amp import grad_scaler

        scaled, sampling = patches.noting(self._scales), patches.sampling

        def scale(original):
            def scale(scaler, outputs):
                given = original(scaler, outputs)
                if sampling.in_burst:
                    scaled(outputs, given)
                return given

            return scale

        patches.wrap(grad_scaler.GradScaler, "scale", scale)
        self._attach_backward(patches, torch)

    def _attach_backward(self, patches: Patches, torch: Any) -> None:
        watch, note = self, patches.noting(self._note)
        look_at = patches.quietly(self._described)

        def around(original):
            def backward(*args, **kwargs):
                if watch._inside:
                    return original(*args, **kwargs)
                seen = look_at(args, kwargs)
                watch._inside = True
                try:
                    given = original(*args, **kwargs)
                finally:
                    watch._inside = False
                note(seen)
                return given

            return backward

        patches.wrap(torch.Tensor, "backward", around)
        patches.wrap(torch.autograd, "backward", around)

    def fed(self, args: tuple, kwargs: dict[str, Any]) -> None:
        """A module that no other called begins a pass of training, with these."""
        import torch

        for value in (*args, *kwargs.values()):
            if isinstance(value, torch.Tensor) and value.numel():
                self._inputs = _key_of(value)
                return
        self._inputs = 0

    def _scales(self, outputs: Any, given: Any) -> None:
        """A scaler multiplied a loss: what it multiplied is the loss."""
        if given is not outputs and hasattr(given, "grad_fn"):
            self._scaled = (given.grad_fn, outputs.grad_fn)

    def _described(self, args: tuple, kwargs: dict[str, Any]) -> tuple[list[Term], Any, int]:
        import torch

        loss = args[0] if args else kwargs.get("tensors")
        if isinstance(loss, (list, tuple)) and len(loss) == 1:
            loss = loss[0]
        self.before(loss)
        code, line = _site()
        scaled, self._scaled = self._scaled, None
        if not isinstance(loss, torch.Tensor) or loss.numel() != 1 or loss.grad_fn is None or (len(args) > 1 and args[1]):
            return [], code, line
        root = scaled[1] if scaled is not None and scaled[0] is loss.grad_fn else loss.grad_fn
        return (terms_of(root, count=loss.device.type == "cpu") if root is not None else []), code, line

    def _note(self, seen: tuple[list[Term], Any, int] | None) -> None:
        inputs, self._inputs = self._inputs, 0
        if seen is None or not self._probe.in_step:
            return
        terms, file, line = seen
        known = [term for term in terms if term.kind in (MEAN, SUM)]
        heaviest = max(known, key=lambda term: abs(term.share), default=None)
        kind = 0 if heaviest is None or len(known) < len(terms) else KINDS[heaviest.kind] if len(terms) == 1 else SEVERAL
        share = 0.0 if heaviest is None else abs(heaviest.share)
        values = {
            "loss_kind": kind,
            "loss_share": min(round(share * BILLIONTHS), _MOST),
            "loss_targets": heaviest.targets if heaviest is not None else 0,
            "loss_site": line,
            "loss_inputs": inputs,
        }
        for name, value in values.items():
            self._probe.series(name, [value])
        if heaviest is not None:
            self._tell(heaviest, len(terms), file, line)

    def _tell(self, term: Term, terms: int, file: str, line: int) -> None:
        divided = " ".join(f"{number:g}" for number in term.divisors)
        # of a sum divided by a count of targets each divisor may be another
        form = (file, line, f"{term.name} {term.kind} {terms} {divided if term.kind == MEAN else len(term.divisors)}")
        if form in self._forms or len(self._forms) >= MOST_FORMS:
            return
        self._forms.add(form)
        self._probe.event(
            "loss_form",
            where=f"{short_path(file)}:{line}" if file else "",
            loss=term.name,
            kind=term.kind,
            terms=terms,
            divided_by=divided,
            source=", ".join(divisors_in(file, line)) if term.divisors and file else "",
        )


def _key_of(tensor: Any) -> int:
    """A number that tells inputs apart: of some of the values on a CPU, of the place in memory elsewhere."""
    place = (tensor.data_ptr(), tensor._version, tuple(tensor.shape))
    if tensor.device.type != "cpu":
        return hash(place) & (_MOST - 1)
    flat = tensor.detach().reshape(-1)
    some = flat[:: max(1, flat.numel() // 16)][:16].tolist()
    return xxhash.xxh3_64_intdigest(repr(some).encode()) & (_MOST - 1)


@functools.cache
def _is_script(file: str) -> bool:
    return not is_library(file)


def _site() -> tuple[str, int]:
    """(file, line) of the script's own code that calls; ("", 0) where there is none."""
    frame: Any = sys._getframe(2)
    while frame is not None:
        if _is_script(frame.f_code.co_filename):
            return frame.f_code.co_filename, frame.f_lineno
        frame = frame.f_back
    return "", 0


@functools.cache
def _divisions(file: str) -> tuple[tuple[int, int, str], ...]:
    """(first line, last line of the function or file around it, divisor) of each division of a loss in a source file."""
    try:
        tree = ast.parse(Path(file).read_text(encoding="utf-8"))
    except (OSError, SyntaxError, ValueError):
        return ()
    found: list[tuple[int, int, str]] = []

    def visit(node: ast.AST, first: int, last: int, of_loss: bool) -> None:
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            first, last, of_loss = node.lineno, node.end_lineno or node.lineno, False
        if isinstance(node, ast.Assign):
            of_loss = any(_OF_A_LOSS.search(ast.unparse(target)) for target in node.targets)
        parts = _division(node)
        if parts is not None and (of_loss or _OF_A_LOSS.search(ast.unparse(parts[0]))):
            found.append((first, last, ast.unparse(parts[1])[:80].replace(",", ";")))
        for child in ast.iter_child_nodes(node):
            visit(child, first, last, of_loss)

    visit(tree, 1, 10**9, False)
    return tuple(found)


def _division(node: ast.AST) -> tuple[ast.expr, ast.expr] | None:
    """(what is divided, by what) of a division; None of another node."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
        return node.left, node.right
    if isinstance(node, ast.AugAssign) and isinstance(node.op, ast.Div):
        return node.target, node.value
    match node:
        case ast.Call(func=ast.Attribute(value=divided, attr="div" | "div_" | "true_divide"), args=[*_, divisor]):
            return divided, divisor
    return None


def divisors_in(file: str, line: int) -> list[str]:
    """What the function around a line divides losses by, as written; what the file does where it divides none there."""
    around = [(first, last, text) for first, last, text in _divisions(file) if first <= line <= last]
    inner = max((first for first, _, _ in around), default=0)
    return [text for first, _, text in around if first == inner] or [text for _, _, text in _divisions(file)]
