"""A guess before a run: entered or passed over, never made up, and answered for what it was."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from ..errors import UsageError
from ..facts.guesses import Expected, expected_in
from ..labs.opened import OpenedLab
from ..record.quantity import NOT_MEASURABLE, Quantity
from ..words import about
from .cards import SMALL, box, escape
from .front_end import is_live, show_widget

if TYPE_CHECKING:
    from .guess_entry import GuessEntry

AS_PREDICTED, CLOSE = 0.05, 0.15
"""Shares of the measured number within which a guess is right, and within which it is close."""

RUN_AGAIN = "Stop what else runs on this machine, and run the cell above again."
ENTER = "Run this cell, and write your guess into the box."


@dataclass(frozen=True)
class Answers:
    """The answers that a lesson expects, with the lesson's own numbers.

    Attributes:
        expected: in the order in which they are tried.
        values: what their formulas name.
    """

    expected: Sequence[Expected] = ()
    values: Mapping[str, float] = field(default_factory=dict)

    def to(self, guess: float) -> Expected | None:
        """The answer that a guess stands for, if it is one of those that were expected."""
        return next((one for one in self.expected if one.is_meant_by(guess, self.values)), None)


def answers_of(lab: OpenedLab | str, **values: float) -> Answers:
    """The answers that a lesson expects, out of the file that its deck reads too.

    Args:
        lab: the opened lab; of a lesson without one its number, as "18".
        values: parameters of the lesson that the file's formulas name; the lab's own settings for those not given.

    Raises:
        UnknownName: no such lesson, or a formula names a value that is not there.
    """
    known: dict[str, Any] = {}
    if not isinstance(lab, str):
        known = {"ranks": lab.spec.ranks, **vars(lab.spec.configure(lab.spec.chosen(None), {}))}
    known = {name: value for name, value in {**known, **values}.items() if isinstance(value, (int, float))}
    found = Answers(expected_in(lab if isinstance(lab, str) else f"{lab.spec.number:02d}"), known)
    for one in found.expected:
        one.is_meant_by(0.0, known)  # a name that is missing is said now, not at the guess
    return found


class Prediction:
    """A number that the reader commits to before it is revealed.

    In a live notebook it shows a box to write into; what is entered there is the guess. Where nobody sits before the page
    it shows the question alone, and then nobody has guessed.

    Args:
        question: what to predict.
        guess: of a reader who gives it as a parameter of the notebook; None where nobody did.
        unit: what it counts.
        low, high: what can be entered.
        answers: those that the lesson expects; see `answers_of`.

    Attributes:
        value: the guess; None while there is none.
    """

    def __init__(
        self,
        question: str,
        guess: float | None = None,
        unit: str = "",
        low: float = 0.0,
        high: float = 1e12,
        answers: Answers | None = None,
    ) -> None:
        self.question, self.unit, self.low, self.high = question, unit, low, high
        self.answers = answers or Answers()
        self._waiting: list[Callable[[], None]] = []
        self._entry: GuessEntry | None = None
        self.value: float | None = None
        if guess is not None:
            if not low <= guess <= high:
                raise UsageError(f"the guess must be from {low:g} to {high:g}; given {guess}")
            self.value = float(guess)

    def enter(self, text: str) -> str:
        """Take what somebody wrote as the guess; says what is wrong with it, or nothing.

        What was guessed first stands once the number is revealed.
        """
        number = number_in(text, self.unit)
        if number is None:
            return "Write a number, such as 30 or 0.5."
        if not self.low <= number <= self.high:
            return f"Write a number from {self.low:g} to {self.high:g}."
        self.value = number
        for tell in self._waiting:
            tell()
        return ""

    def when_entered(self, tell: Callable[[], None]) -> None:
        """Call a function as soon as a guess is entered."""
        self._waiting.append(tell)

    def entry(self) -> GuessEntry:
        """The box to write into: one, wherever it is shown."""
        from .guess_entry import GuessEntry

        if self._entry is None:
            self._entry = GuessEntry(self)
        return self._entry

    def __repr__(self) -> str:
        return self.question if self.value is None else f"{self.question} Predicted: {self.value:g} {self.unit}".rstrip()

    def _repr_html_(self) -> str:
        note = "" if self.value is not None or is_live() else f"<div style='{SMALL}'>{ENTER}</div>"
        return box(f"<strong>{escape(self.question)}</strong>{note}")

    def _ipython_display_(self) -> None:
        """The question as text, which stays without a kernel, and under it the box, where somebody can write into it."""
        from IPython.display import display

        display({"text/html": self._repr_html_(), "text/plain": repr(self)}, raw=True)
        if is_live():
            show_widget(self.entry().widget, ENTER)

    def reveal(self, actual: float | Quantity) -> Revealed:
        """Compare with what was measured: a number in the prediction's unit, or a measure as it is.

        Of a measure that is a share, a prediction in per cent gets the per cent. What could not be measured, or lies outside
        of what can be entered, is revealed as that: no guess is held against it.
        """
        if not isinstance(actual, Quantity):
            return self._revealed(float(actual), "")
        if isinstance(actual.value, str):
            return self._revealed(math.nan, actual.value)
        in_percent = actual.is_share and self.unit == "%"
        return self._revealed(float(actual.value) * (100 if in_percent else 1), "", actual.source or "measured")

    def _revealed(self, actual: float, why: str, how: str = "measured") -> Revealed:
        can_be = math.isfinite(actual) and self.low <= actual <= self.high
        return Revealed(self, actual if can_be else None, "" if can_be else why or NOT_MEASURABLE, how)


def number_in(text: str, unit: str = "") -> float | None:
    """The number that a text says, with its unit or without: "30 %", "1,797", "0,5"; None if it says none."""
    bare = text.strip().removesuffix(unit).strip().removesuffix("%").strip()
    if re.fullmatch(r"\d{1,3}(,\d{3})+(\.\d+)?", bare):
        bare = bare.replace(",", "")
    try:
        number = float(bare.replace(",", "."))
    except ValueError:
        return None
    return number if math.isfinite(number) else None


class Revealed:
    """A prediction beside the measurement.

    In a live notebook it stays hidden until a guess was entered or the button was pressed; stored, it is folded.

    Attributes:
        actual: what was measured; None where it could not be.
        why: why it could not be.
    """

    def __init__(self, prediction: Prediction, actual: float | None, why: str = "", how: str = "measured") -> None:
        self._prediction, self.actual, self.why, self._how = prediction, actual, why, how

    @property
    def predicted(self) -> float | None:
        """The guess; None where nobody guessed."""
        return self._prediction.value

    @property
    def hit(self) -> bool:
        return self._within(AS_PREDICTED)

    def _within(self, share: float) -> bool:
        if self.actual is None or self.predicted is None:
            return False
        return math.isclose(self.predicted, self.actual, rel_tol=share, abs_tol=1e-9)

    @property
    def answer(self) -> str:
        """What to say to the guess: whether it is right, when it would be, or how far off it is; empty without a guess."""
        guess, actual = self.predicted, self.actual
        if guess is None or actual is None:
            return ""
        if self.hit:
            return "As you predicted."
        meant = self._prediction.answers.to(guess)
        if meant is not None:
            return f"{guess:g}: that would be so if {meant.so_if}. {meant.reply}"
        if self._within(CLOSE):
            return "That is close."
        return _how_far(guess, actual)

    @property
    def said(self) -> str:
        """The two numbers, as a person says them."""
        unit = self._prediction.unit
        mine = "" if self.predicted is None else f"You said {f'{self.predicted:g} {unit}'.rstrip()}; "
        if self.actual is None:
            return f"{mine}{self.why}. {RUN_AGAIN}"
        text = f"{mine}{self._how}: {f'{about(self.actual)} {unit}'.rstrip()}."
        return text[0].upper() + text[1:]

    def __repr__(self) -> str:
        return " ".join(part for part in (self._prediction.question, self.said, self.answer) if part)

    def as_html(self) -> str:
        """The answer in sight."""
        answer = f"<div>{_code(escape(self.answer))}</div>" if self.answer else ""
        return box(f"{escape(self._prediction.question)}<br><strong>{escape(self.said)}</strong>{answer}")

    def _repr_html_(self) -> str:
        """The answer folded: what a page shows that nobody runs."""
        folded = f"<details><summary>Reveal</summary><strong>{escape(self.said)}</strong> {_code(escape(self.answer))}"
        return box(f"{escape(self._prediction.question)}{folded}</details>")

    def _ipython_display_(self) -> None:
        from IPython.display import display

        if not is_live():
            display({"text/html": self._repr_html_(), "text/plain": repr(self)}, raw=True)
        elif self.predicted is not None:
            self._prediction.entry().close()  # what was guessed stands
            display({"text/html": self.as_html(), "text/plain": repr(self)}, raw=True)
        else:
            from .guess_entry import reveal_widget

            show_widget(reveal_widget(self._prediction, self.as_html), ENTER)


def _how_far(guess: float, actual: float) -> str:
    if guess == 0 or actual == 0 or (guess < 0) != (actual < 0):
        return "It is more than you said." if actual > guess else "It is less than you said."
    ratio = actual / guess
    if ratio >= 1.5:
        return f"That is {about(ratio)} times your guess."
    if ratio <= 1 / 1.5:
        return f"Your guess is {about(1 / ratio)} times that."
    return "It is more than you said." if actual > guess else "It is less than you said."


def _code(text: str) -> str:
    """Backticks of a reply as code; the text is escaped already."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", text)
