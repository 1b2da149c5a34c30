"""What the tests of exercises share: which wrong answers are tried (all in `make soak`, every so many-th of the slow ones in
`make test`), and an answer out of code that a learner might have written."""

from typing import Any

import pytest


def each(answers, *, quick_every: int = 1):
    """A test for each function of a table, by name; those that are left out of `make test` are marked as soak."""
    return pytest.mark.parametrize(
        "wrong",
        [
            pytest.param(answer, id=name, marks=[] if number % quick_every == 0 else [pytest.mark.soak])
            for number, (name, answer) in enumerate(answers.items())
        ],
    )


def written(code: str, name: str) -> Any:
    """What the code defines under a name."""
    there: dict[str, Any] = {"__name__": "__main__"}
    exec(code, there)
    return there[name]


def named(*functions) -> dict:
    """A table of functions by their names."""
    return {function.__name__: function for function in functions}
