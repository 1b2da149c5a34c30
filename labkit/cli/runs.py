"""`labkit runs`."""

from __future__ import annotations

from .options import Json
from .output import console, write_json


def runs(json: Json = None) -> None:
    """List the kept runs, newest first.

    `labkit show` takes their names.
    """
    from ..record.store import kept_runs, runs_folder
    from ..view.terminal import print_runs

    found = kept_runs()
    rows = [
        {
            "name": run.folder.name,
            "lab": run.lab,
            "variant": run.variant,
            "ranks": run.provenance.world_size,
            "date": run.provenance.date,
            "record": str(run.folder),
        }
        for run in found
    ]
    write_json({"runs": rows}, json)
    if json != "-":
        print_runs(console(), rows, runs_folder())
