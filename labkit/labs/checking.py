"""What the checks of exercises share: cases drawn anew each time, questions asked in a process of their own, and doubt.

A check asks about cases that the learner has not seen, so that what is checked is the property and not an answer to a case.
The function under check gets questions alone: what is right is worked out in another process, after the answers are in.
"""

from __future__ import annotations

import inspect
import math
import random
import re
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from ..errors import LabkitError
from ..ranks.context import RankContext
from .opened import OpenedLab

LARGEST_SEED = 2**31 - 1
"""So that the same number is good for a run's seed."""


class CannotTell(LabkitError):
    """An answer can be judged neither right nor wrong on this machine now. Says what was seen, and what to try."""


@dataclass(frozen=True)
class Question:
    """One call of the learner's function.

    Attributes:
        said: the case in words, for a message about it.
        arguments: what the function is given. Nothing of the answer.
    """

    said: str
    arguments: tuple[Any, ...]


def new_seed() -> int:
    """A seed that nobody can foresee, for the cases of one check."""
    return secrets.randbelow(LARGEST_SEED + 1)


def unfit(function: Callable[..., Any], signature: str) -> str:
    """Why a learner's function cannot be called as the exercise calls it, in a sentence; empty where it can.

    Args:
        signature: the first line that the exercise asks for, "def my_loader(data, rank):". Of a class nothing is asked here.
    """
    asked = re.match(r"def \w+\((.*)\)", signature)
    if asked is None:
        return ""
    names = [name.strip() for name in asked[1].split(",") if name.strip()]
    try:
        taken = inspect.signature(function)
    except (TypeError, ValueError):
        return ""  # built in: its call will say
    try:
        taken.bind(*names)
    except TypeError:
        given = ", ".join(taken.parameters) or "nothing"
        return f"the function is called with ({', '.join(names)}), and yours takes ({given}): begin it with `{signature}`"
    return ""


def log_uniform(draw: random.Random, low: float, high: float) -> float:
    """A number between two others, each decade as likely as the next."""
    return math.exp(draw.uniform(math.log(low), math.log(high)))


def ask(function: Callable[..., Any], questions: Sequence[Question], lab: OpenedLab, draw: random.Random) -> list[Any]:
    """Call a learner's function with each question, in an order that is drawn, in a process of its own.

    Returns:
        The answers, in the order of the questions.

    Raises:
        LabkitError: it raised, hung or ended its process; of an exception the case and the line are told.
    """
    order = draw.sample(range(len(questions)), len(questions))
    answers = lab.try_out(call_each, (function, tuple(questions[i] for i in order)))
    return [answer for _, answer in sorted(zip(order, answers, strict=True), key=lambda pair: pair[0])]


def call_each(context: RankContext) -> list[Any]:
    """The function's answers, in the order in which it is asked. *Called on* one rank, without a group."""
    function, questions = context.task
    answers = []
    for question in questions:
        try:
            answers.append(function(*question.arguments))
        except Exception as error:
            raise with_the_case(error, question.said) from error
    return answers


def with_the_case(error: Exception, said: str) -> Exception:
    """The same error, by its name and its line, with the case that it was raised for in its text."""
    kind = type(type(error).__name__, (RuntimeError,), {})
    return kind(f"{error} ({said})").with_traceback(error.__traceback__)


def first_of(findings: list[str], most: int = 4) -> list[str]:
    """The first findings, and how many more there are: enough to see what is wrong."""
    more = len(findings) - most
    return findings if more <= 0 else [*findings[:most], f"and {more} more like these"]
