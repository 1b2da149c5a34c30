"""Hints, solutions, starting code and diagnoses as pieces of HTML."""

from __future__ import annotations

from typing import TYPE_CHECKING

from . import palette
from .cards import SMALL, box, chip, escape

if TYPE_CHECKING:
    from ..classroom.mystery import Mystery
    from ..results import Diagnosed, Hint, Shown

LEFT = "text-align:left"


def hint_card(hint: Hint) -> str:
    """One hint, and what to ask for next."""
    return box(
        f"<strong>Hint {hint.number} of {hint.of}.</strong> {escape(hint.text)}"
        f"<div style='{SMALL}'>{escape(hint.more)}</div>",
        palette.BLUE,
    )


def code_card(shown: Shown) -> str:
    """Code; folded it is out of sight until somebody opens it."""
    note = f"<div>{escape(shown.note)}</div>" if shown.note else ""
    code = f"<pre style='margin:.3em 0;line-height:1.35'>{escape(shown.code)}</pre>{note}"
    if shown.folded:
        return box(f"<details><summary>{escape(shown.title)}</summary>{code}</details>")
    if shown.fresh_cell:
        _offer(shown.code)
    return box(f"<strong>{escape(shown.title)}</strong>{code}")


def _offer(code: str) -> None:
    """Put code into a new cell below, where somebody sits before a notebook."""
    from IPython.core.getipython import get_ipython

    from .front_end import is_live

    shell = get_ipython()
    if shell is not None and is_live():
        shell.set_next_input(code)


def diagnosed_card(diagnosed: Diagnosed) -> str:
    """Right or not, and what the detectors say."""
    status, word = ("clear", "right") if diagnosed.right else ("found", "not that")
    rest = f"<div style='{SMALL}'>{escape(diagnosed.next)}</div>" if diagnosed.next else ""
    body = f"{chip(status, word)} <strong>{escape(diagnosed.answer)}</strong>. {escape(diagnosed.because)}{rest}"
    return box(body, palette.STATUS_COLOUR[status])


def mystery_card(mystery: Mystery) -> str:
    """What ran, without what it was; and among which faults to choose."""
    rows = "".join(
        f"<tr><td style='{LEFT}'><code>{escape(name)}</code></td><td style='{LEFT}'>{escape(asks)}</td></tr>"
        for name, asks in mystery.choices.items()
    )
    return box(
        f"<strong>A record without a label.</strong> {escape(mystery.said)}<table style='margin:.3em 0'>{rows}</table>"
        f"<div style='{SMALL}'>{escape(mystery.how)}</div>",
        palette.BLUE,
    )
