"""The frame that every lesson shares: parameters that are checked, a banner, a prediction, the words for the cost."""

from __future__ import annotations

import ast
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from ..detect.cost import cost_of
from ..errors import UnknownName, UsageError
from ..labs.opened import OpenedLab
from ..record.quantity import NOT_MEASURABLE, Quantity
from .cards import box, cost_card, escape, gpu_hours_said
from .drawings import drawing as drawing  # asked for as lesson.drawing("ring", ranks=4)
from .drawings import steps as steps


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
        )


@dataclass
class Prediction:
    """A number that the reader commits to before it is revealed.

    Attributes:
        question: what to predict.
        guess: the number that stands if the reader enters none, so that the notebook runs by itself.
        unit: what it counts.
        low, high: what can be entered.
    """

    question: str
    guess: float
    unit: str = ""
    low: float = 0.0
    high: float = 1e12

    def __post_init__(self) -> None:
        import ipywidgets

        if not self.low <= self.guess <= self.high:
            raise UsageError(f"the guess must be from {self.low:g} to {self.high:g}; given {self.guess}")
        self._entry = ipywidgets.BoundedFloatText(
            value=self.guess, min=self.low, max=self.high, description="I predict", style={"description_width": "initial"}
        )
        self._widget = ipywidgets.HBox([self._entry, ipywidgets.Label(self.unit)])

    @property
    def value(self) -> float:
        """What stands in the entry now."""
        return self._entry.value

    def __repr__(self) -> str:
        return f"{self.question} Predicted: {self.value:g} {self.unit}".rstrip()

    def _repr_html_(self) -> str:
        return box(f"<strong>{escape(self.question)}</strong>")

    def _ipython_display_(self) -> None:
        """The question as text, which stays without a kernel, and under it the entry, which does not."""
        from IPython.display import display

        display({"text/html": self._repr_html_(), "text/plain": repr(self)}, raw=True)
        display(self._repr_mimebundle_(), raw=True)

    def _repr_mimebundle_(self, include=None, exclude=None):
        bundle: Any = self._widget._repr_mimebundle_(include=include, exclude=exclude)
        data = dict(bundle[0] if isinstance(bundle, tuple) else bundle)
        said = f"{self.value:g} {self.unit}".rstrip()
        data["text/plain"] = f"{self.question} I predict {said}: the box needs a running kernel."
        return data

    def reveal(self, actual: float | Quantity) -> Revealed:
        """Compare with what was measured: a number in the prediction's unit, or a measure as it is.

        Of a measure that is a share, a prediction in per cent gets the per cent. What could not be measured, or lies outside
        of what can be entered, is revealed as that: no guess is held against it.
        """
        if not isinstance(actual, Quantity):
            return self._revealed(float(actual), "")
        if isinstance(actual.value, str):
            return self._revealed(math.nan, actual.value)
        return self._revealed(float(actual.value) * (100 if actual.is_share and self.unit == "%" else 1), "")

    def _revealed(self, actual: float, why: str) -> Revealed:
        can_be = math.isfinite(actual) and self.low <= actual <= self.high
        return Revealed(
            self.question, self.value, actual if can_be else None, self.unit, "" if can_be else why or NOT_MEASURABLE
        )


@dataclass(frozen=True)
class Revealed:
    """A prediction beside the measurement.

    Attributes:
        predicted: the guess.
        actual: what was measured; None where it could not be.
        why: why it could not be.
    """

    question: str
    predicted: float
    actual: float | None
    unit: str
    why: str = ""

    @property
    def hit(self) -> bool:
        return self.actual is not None and math.isclose(self.predicted, self.actual, rel_tol=0.05, abs_tol=1e-9)

    def __repr__(self) -> str:
        if self.actual is None:
            return f"{self.question} You said {self.predicted:g} {self.unit}".rstrip() + f"; {self.why}. {RUN_AGAIN}"
        return f"{self.question} You said {self.predicted:g}, measured {self.actual:.4g} {self.unit}".rstrip() + "."

    def _repr_html_(self) -> str:
        if self.actual is None:
            said = f"You said {self.predicted:g} {escape(self.unit)}".rstrip()
            return box(f"{escape(self.question)}<br><strong>{said}</strong>; {escape(self.why)}. {RUN_AGAIN}")
        verdict = "As predicted." if self.hit else "Not what was predicted: that is what this lab is for."
        return box(
            f"{escape(self.question)}<br><strong>You said {self.predicted:g}; measured {self.actual:.4g}</strong> "
            f"{escape(self.unit)}. {verdict}"
        )


RUN_AGAIN = "Stop what else runs on this machine, and run the cell above again."


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
