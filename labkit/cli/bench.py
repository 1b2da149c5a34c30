"""`labkit bench`."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from .options import Device, Json, check_json, option
from .output import console, write_json


def bench(
    refresh: Annotated[bool, typer.Option("--refresh", help="Measure again, whatever is kept.")] = False,
    ranks: Annotated[int | None, option("Processes of the link and of the launch; 2 if left out.", "INTEGER")] = None,
    device: Device = None,
    json: Json = None,
) -> None:
    """Say what this machine can do.

    Arithmetic, memory, link, storage and launch are measured, and kept as the baseline of all labs.
    """
    check_json(json)

    from ..bench import bench as measure
    from ..bench import labs_here
    from ..view.survey import print_bench
    from ..view.terminal import progress_bar

    with progress_bar(console(stderr=True)) as on_progress:
        found = measure(refresh=refresh, ranks=ranks, device=device, on_progress=on_progress)
    if found is None:
        return  # another rank under torchrun: rank 0 reports
    if found.measured_now:
        print(f"measured: {found.reason}", file=sys.stderr)
    write_json(found.report(), json)
    if json != "-":
        print_bench(console(), found, labs_here())
