"""labkit: make the silent failures of distributed training happen, see them, measure them, fix them, prove the fix."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from .showing import looks_are_known_by

__version__ = "0.1.0"

looks_are_known_by("labkit.view.nouns")  # when the first noun is to be shown: `import labkit` stays quick

_PUBLIC = {
    "lab": "labkit.facade",
    "labs_table": "labkit.facade",
    "labs_here": "labkit.bench",
    "judge": "labkit.reading",
    "read": "labkit.reading",
    "Reading": "labkit.reading",
    "read_baseline": "labkit.record.baseline",
    "Lab": "labkit.facade",
    "read_record": "labkit.record.store",
    "Fault": "labkit.ranks.faults",
    "Probe": "labkit.record.probe",
    "watch_ddp": "labkit.watch.ddp",
    "watch_loader": "labkit.watch.loader",
    "watch_precision": "labkit.watch.precision",
    "Record": "labkit.record.schema",
    "Verdict": "labkit.detect.verdict",
    "LabkitError": "labkit.errors",
    "OutOfMemory": "labkit.errors",
    "RankFailed": "labkit.errors",
    "RankLeftEarly": "labkit.errors",
    "RankTimeout": "labkit.errors",
    "RunStopped": "labkit.errors",
    "UsageError": "labkit.errors",
}

__all__ = ["__version__", "doctor", *sorted(_PUBLIC)]

if TYPE_CHECKING:
    from . import doctor
    from .bench import labs_here
    from .detect.verdict import Verdict
    from .errors import LabkitError, OutOfMemory, RankFailed, RankLeftEarly, RankTimeout, RunStopped, UsageError
    from .facade import Lab, lab, labs_table
    from .ranks.faults import Fault
    from .reading import Reading, judge, read
    from .record.baseline import read_baseline
    from .record.probe import Probe
    from .record.schema import Record
    from .record.store import read_record
    from .watch.ddp import watch_ddp
    from .watch.loader import watch_loader
    from .watch.precision import watch_precision


def __getattr__(name: str):
    """Load a public name when it is first used, so that `import labkit` stays quick and loads no torch."""
    if name in _PUBLIC:
        value = getattr(importlib.import_module(_PUBLIC[name]), name)
        globals()[name] = value
        return value
    if name == "doctor":
        return importlib.import_module("labkit.doctor")
    raise AttributeError(f"module 'labkit' has no attribute {name!r}; public names: {', '.join(__all__)}")


def __dir__() -> list[str]:
    return __all__
