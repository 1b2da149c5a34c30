"""`labkit runs`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from ..errors import LabkitError, UnknownName
from .options import Json, option
from .output import console, write_json

if TYPE_CHECKING:
    from ..labs.spec import LabSpec
    from ..record.store import KeptRun


def runs(
    lab: Annotated[str | None, option("Those of one lab only.", "LAB", "--lab")] = None,
    json: Json = None,
) -> None:
    """List the kept runs, newest first.

    Each with the settings that were chosen and what was found. `labkit show` and `labkit compare` take their names.
    """
    from .. import labs
    from ..record.store import kept_runs, runs_folder
    from ..view.terminal import print_runs

    slug = None if lab is None else labs.spec(lab).slug
    rows = [_row(run) for run in kept_runs() if slug in (None, run.lab)]
    write_json({"runs": rows}, json)
    if json != "-":
        print_runs(console(), rows, runs_folder())


def _row(run: KeptRun) -> dict[str, Any]:
    from .. import __version__
    from ..record.kept import remembered
    from ..view.kept_runs import said_settings, said_verdict

    spec = _spec(run)
    verdict = remembered(run.folder, __version__) or _judged(run)
    return {
        "name": run.folder.name,
        "lab": run.lab,
        "variant": run.variant,
        "ranks": run.provenance.world_size,
        "date": run.provenance.date,
        "settings": said_settings(run, spec),
        "verdict": said_verdict(verdict),
        "record": str(run.folder),
    }


def _spec(run: KeptRun) -> LabSpec | None:
    from .. import labs

    try:
        return labs.spec(run.lab)
    except UnknownName:
        return None  # of a lab that this labkit does not have


def _judged(run: KeptRun) -> Any:
    """Judge a run that nobody judged yet, and keep what is said of it; None where it cannot be read."""
    from .. import __version__
    from ..reading import read
    from ..view.kept_runs import keep_verdict

    try:
        reading = read(run.folder)
        return keep_verdict(reading, reading.verdicts, __version__)
    except (LabkitError, OSError):
        return None
