"""Record the labs on the device at hand, so that notebooks elsewhere can show them as `recorded`.

A recording is a record like any other; its provenance says `recorded`, the device and the date.
"""

from __future__ import annotations

import math
import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec

from .errors import LabkitError, RecordError, UsageError
from .facade import Lab
from .facts.shipped import data_folder
from .labs import slugs, spec
from .labs.spec import Capture, LabSpec
from .ranks.backend import visible_gpus
from .record.schema import Record
from .record.store import read_record, write_record

Tell = Callable[[str], None]


def capture(labs: list[str] | None, out: Path, *, minutes: float, tell: Tell) -> list[Record]:
    """Run the captures of the labs and keep each under `out`/SLUG/NAME.

    *Called on* the parent. What fails is told and left out; what is kept so far stays.

    Args:
        labs: slugs; all labs if None.
        out: a new or empty folder.
        minutes: no run starts once these have passed.
        tell: called with a line for each run.

    Raises:
        UnknownName: a slug that is no lab.
        RecordError: `out` is not empty.
    """
    if not 0 < minutes < math.inf:
        raise UsageError(f"minutes must be above 0, and not infinite; given {minutes:g}")
    chosen = [spec(slug) for slug in (labs or slugs())]
    out = out.expanduser()
    if out.is_file() or (out.is_dir() and any(out.iterdir())):
        raise RecordError(f"{out} is not an empty folder; give --out a new one, so that no recording is overwritten")
    kept, until = [], time.monotonic() + 60 * minutes
    on_gpu = visible_gpus() > 0
    for lab, one in ((each, one) for each in chosen for one in _captures(each)):
        if time.monotonic() > until:
            tell(f"{lab.slug}/{one.name}: left out, the {minutes:g} minutes have passed")
            continue
        settings = {**one.settings, **(one.on_gpu if on_gpu else {})}
        try:
            record = Lab(lab).run(one.variant or None, record_dir=out / lab.slug / one.name, **settings)
        except LabkitError as error:
            shutil.rmtree(out / lab.slug / one.name, ignore_errors=True)
            tell(f"{lab.slug}/{one.name}: left out: {error}")
            continue
        kept.append(_as_recording(record))
        tell(f"{lab.slug}/{one.name}: kept, {sum(run.wall_s for run in record.runs.values()):.1f} s")
    return kept


def _captures(lab: LabSpec) -> tuple[Capture, ...]:
    if lab.captures:
        return lab.captures
    return tuple(Capture(name=v.name, variant=v.name) for v in lab.variants) or (Capture(name="survey", variant=""),)


def _as_recording(record: Record) -> Record:
    provenance = msgspec.structs.replace(record.provenance, source="recorded")
    recording = msgspec.structs.replace(record, provenance=provenance)
    write_record(recording)
    return recording


def recordings(slug: str, folder: Path | None = None) -> Iterator[Record]:
    """The recordings of a lab that labkit ships, in the order of their names; none if there are none yet."""
    where = (folder or data_folder() / "recordings") / slug
    for path in sorted(where.glob("*/record.json")):
        yield read_record(path)
