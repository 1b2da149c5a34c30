"""`labkit explain`."""

from __future__ import annotations

from typing import Annotated

import typer

from .output import console


def explain(
    key: Annotated[
        str | None,
        typer.Argument(metavar="[KEY]", help="A question, a reason, or question/reason, as a report prints them."),
    ] = None,
) -> None:
    """Say more of a finding.

    What goes wrong, the fix as a diff, how labkit sees it, what could fool it, and the lab that shows it. Without a KEY the
    questions are listed.
    """
    from ..detect.explained import explanation
    from ..labs import specs
    from ..view.explained import print_explanation, print_questions

    if key is None:
        print_questions(console())
        return
    found = explanation(key)
    asking = [spec for spec in specs() if found.detector in spec.detectors]
    slug = found.told.lab if found.told else ""
    print_explanation(console(), found, next(iter(asking), next((spec for spec in specs() if spec.slug == slug), None)))
