"""`labkit show`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from .options import All, FailOn, Json, check_statuses, check_writable, named_path, option
from .output import draw, fail_on_hit, rank_output, show_reading, write_json, write_page, write_trace


def show(
    record: Annotated[
        str,
        typer.Argument(
            metavar="RECORD", help="A record's folder, that of a script's probe files, a name of `labkit runs`, or `last`."
        ),
    ] = "last",
    lab: Annotated[
        str | None,
        option("Judge by this lab, and say what its questions lack; by its own if left out, a script by all.", "SLUG"),
    ] = None,
    json: Json = None,
    figures: Annotated[str | None, option("Draw the figures into this folder, as PNG.", "DIR")] = None,
    output: Annotated[int | None, option("Print what this rank printed.", "INTEGER")] = None,
    trace: Annotated[str | None, option("Write a Chrome trace, which ui.perfetto.dev opens.", "FILE")] = None,
    html: Annotated[str | None, option("Write a report as one page that needs nothing beside it.", "FILE")] = None,
    fail_on: FailOn = None,
    everything: All = False,
) -> None:
    """Show a record again.

    Its verdicts and measures; its figures, a report as a page, a trace or what a rank printed if you ask for them.
    """
    from .. import labs
    from ..reading import read
    from ..record.blame import blamed_on
    from ..record.unknown_names import said_unknown

    if lab is not None:
        labs.spec(lab)  # wrong use is said before anything is read
    check_statuses(fail_on)
    traced, pictures, page = (None if word is None else named_path(word) for word in (trace, figures, html))
    for where, name in ((traced, "--trace"), (page, "--html")):
        if where is not None:
            check_writable(where, name)
    found = read(named_path(record), lab=lab)
    if output is not None:
        print(rank_output(found, output), end="")
        return
    with blamed_on(found):
        if traced is not None:
            write_trace(found, traced)
        if page is not None:
            write_page(found, page)
        for why in found.left_out:
            print(f"not measured: {why}", file=sys.stderr)
        if found.unknown:
            print(said_unknown(found.unknown), file=sys.stderr)
        if json is not None:
            write_json(found.report(), json)
        if pictures is not None:
            draw(found, pictures)
        if json != "-":
            show_reading(found, everything=everything, lacking=lab is not None)
    fail_on_hit(found, fail_on)
