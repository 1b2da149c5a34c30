"""The widgets of a prediction: the box for a guess, and the button that reveals the number. Both by keyboard as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import ipywidgets

if TYPE_CHECKING:
    from .prediction import Prediction


class GuessEntry:
    """A box to write a guess into; Enter, or leaving the box, commits it.

    Attributes:
        widget: what to show.
    """

    def __init__(self, prediction: Prediction) -> None:
        self._prediction = prediction
        self._text = ipywidgets.Text(
            value="" if prediction.value is None else f"{prediction.value:g}",
            placeholder="a number, then Enter",
            description="I predict",
            continuous_update=False,
            style={"description_width": "initial"},
        )
        self._note = ipywidgets.Label("")
        self._text.observe(self._entered, names="value")
        self.widget = ipywidgets.HBox([self._text, ipywidgets.Label(prediction.unit), self._note])

    def _entered(self, change: dict) -> None:
        if change["new"].strip():
            wrong = self._prediction.enter(change["new"])
            self._note.value = wrong or f"Your guess is {self._prediction.value:g}."

    def close(self) -> None:
        """Take no other guess: the number is in sight."""
        self._text.disabled = True


def reveal_widget(prediction: Prediction, answer: Callable[[], str]) -> ipywidgets.VBox:
    """The box once more, a Reveal button, and room for the answer: empty until one of them was used.

    Args:
        answer: gives the answer as HTML; asked when it is to be in sight, so that no widget holds it before.
    """
    entry = prediction.entry()
    button = ipywidgets.Button(description="Reveal", tooltip="show what was measured, without a guess")
    room = ipywidgets.HTML("")

    def reveal(*_: object) -> None:
        entry.close()
        button.disabled, note.layout.display = True, "none"
        room.value = answer()

    button.on_click(reveal)
    prediction.when_entered(reveal)
    note = ipywidgets.Label("Your guess first, or press Reveal.")
    return ipywidgets.VBox([ipywidgets.HBox([entry.widget, button]), note, room])
