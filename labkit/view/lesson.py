"""The frame that every lesson shares: parameters that are checked, a banner, a prediction, the words for the cost."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from ..detect.cost import cost_of
from ..errors import UnknownName
from ..labs.opened import OpenedLab
from ..theory.panels import named
from . import dark
from .cards import box, cost_card, escape, gpu_hours_said
from .drawings import drawing as drawing  # asked for as lesson.drawing("ring", ranks=4)
from .drawings import steps as steps
from .front_end import is_live
from .prediction import Prediction as Prediction
from .prediction import Revealed as Revealed
from .prediction import answers_of as answers_of
from .profiled import trace as trace
from .theory import TheoryPanel


def begin(lab: OpenedLab | str, namespace: Mapping[str, Any], *, known: tuple[str, ...]) -> Banner:
    """Check the notebook's parameters and say on what machine it runs. Call it in the cell after the parameters.

    papermill only warns of a parameter that a notebook does not have; here it is refused, with the nearest spelling.

    Args:
        lab: the opened lab; of a lesson without one its question.
        namespace: the notebook's `globals()`.
        known: the names of the parameters.

    Raises:
        UnknownName: a name that is no parameter.
    """
    for name in _injected(namespace.get("In", [])):
        if name not in known:
            raise UnknownName("parameter of this notebook", name, known)
    return Banner(lab, {name: namespace[name] for name in known})


def theory(name: str, **settings: Any) -> TheoryPanel:
    """A panel of the theory that belongs to no lab's record: `lesson.theory("tiles", rows=2305)`.

    Raises:
        UnknownName: there is no such panel, or no such slider.
        UsageError: a value that it cannot take.
    """
    return TheoryPanel(named(name).at(**settings))


def _injected(cells: list[str]) -> list[str]:
    """Names that papermill's cell of parameters assigns; it begins with a comment that says so."""
    names = []
    for source in cells:
        if source.startswith("# Parameters"):
            for node in ast.walk(ast.parse(source)):
                if isinstance(node, ast.Assign):
                    names += [target.id for target in node.targets if isinstance(target, ast.Name)]
    return names


class Banner:
    """What runs here: the lesson's question, the parameters, the machine."""

    def __init__(self, lab: OpenedLab | str, parameters: Mapping[str, Any]) -> None:
        from ..watch.machine import processor_name

        self.question = lab if isinstance(lab, str) else lab.spec.question
        self.title = lab if isinstance(lab, str) else f"Lab {lab.spec.number:02d} {lab.spec.slug}"
        self.parameters, self.machine = parameters, processor_name()

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self.parameters.items())
        return f"{self.title} on {self.machine}\n{values}"

    def _repr_html_(self) -> str:
        values = ", ".join(f"{name} = {value!r}" for name, value in self.parameters.items())
        return box(
            f"<strong>{escape(self.question)}</strong><div>{escape(values)}</div>"
            f"<div style='font-size:85%;opacity:.8'>Runs here, now: {escape(self.machine)}. Every number below is measured "
            "on this machine unless it says otherwise.</div>"
        ) + (dark.style() if is_live() else "")


class CostOf:
    """The cost of a waste at a stated scale, as text and as a card."""

    def __init__(self, waste: float, *, num_gpus: float = 64, hours: float = 72, price_per_gpu_hour: float = 2.50) -> None:
        self.cost = cost_of(waste, num_gpus=num_gpus, hours=hours, price_per_gpu_hour=price_per_gpu_hour)
        self._card = cost_card(waste, self.cost, num_gpus=num_gpus, hours=hours, price=price_per_gpu_hour)
        self._text = (
            f"{num_gpus:g} GPUs for {hours:g} h: {gpu_hours_said(waste, self.cost, num_gpus * hours)}, "
            f"{self.cost.money:,.0f} at {price_per_gpu_hour:,.2f} an hour (simulated)"
        )

    def __repr__(self) -> str:
        return self._text

    def _repr_html_(self) -> str:
        return self._card
