"""`labkit compare`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ..errors import RecordError
from .options import Json, check_json, named_path
from .output import console, write_json

if TYPE_CHECKING:
    from ..reading import Reading


def compare(
    before: Annotated[
        str | None,
        typer.Argument(
            metavar="[A]",
            help="The run to compare with: a record's folder, a name of `labkit runs`, or `last`. "
            "If left out, the run of the same lab before B.",
        ),
    ] = None,
    now: Annotated[
        str | None, typer.Argument(metavar="[B]", help="The run that is compared, named as A is; the newest if left out.")
    ] = None,
    json: Json = None,
) -> None:
    """Say how one run differs from another.

    Settings, answers, step times, losses and measures: what differs in sentences, and the measures of both in a table.
    """
    from ..reading import differences_of, read
    from ..view.terminal import print_comparison

    check_json(json)
    own = read(named_path(now or "last"))
    other = read(_run_before(own)) if before is None else read(named_path(before))
    sentences = differences_of(other, own)
    write_json(_report(other, own, sentences), json)
    if json != "-":
        print_comparison(console(), [(side, side.measures) for side in (other, own)], own.main_measures, sentences)


def _run_before(reading: Reading) -> Path:
    """The kept run of the same lab that came before this one."""
    from ..record.store import kept_runs

    kept = [run for run in kept_runs() if run.lab == reading.lab]
    place = next((at for at, run in enumerate(kept) if run.folder == reading.folder), -1)
    if place + 1 >= len(kept):
        raise RecordError(f"there is no kept run of {reading.lab} before this one; name two runs: labkit compare A B")
    return kept[place + 1].folder


def _report(other: Reading, own: Reading, sentences: list[str]) -> dict[str, Any]:
    sides = (("before", other), ("now", own))
    return {"differences": sentences} | {side: reading.report() for side, reading in sides}
