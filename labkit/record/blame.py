"""Whose fault it is that a record cannot be understood."""

from __future__ import annotations

import contextlib
import traceback
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from ..errors import LabkitError, RecordError
from .schema import Origin, Record


@contextlib.contextmanager
def blamed_on(*records: Record) -> Iterator[None]:
    """A record may be whole lines of valid JSON and still not say what its lab records: then it is the record's fault.

    What is raised is named with its place, for whoever finds that it is labkit's.
    """
    try:
        yield
    except (LabkitError, OSError):
        raise
    except Exception as error:
        if not records:
            raise
        record = records[0]
        last = traceback.extract_tb(error.__traceback__)[-1]
        what = f"what {record.lab} records" if record.origin is Origin.LAB else "what can be read of a script"
        raise RecordError(
            f"{record.folder} does not hold {what} ({type(error).__name__}: {error}, in "
            f"{Path(last.filename).name}:{last.lineno}); it is damaged, or another labkit wrote it: run it again"
        ) from error


@contextlib.contextmanager
def understood(record: Record) -> Iterator[None]:
    """Blame the record also for numbers that divide by zero or overflow, which numpy alone would only warn of."""
    with blamed_on(record), np.errstate(divide="raise", over="raise", invalid="raise"):
        yield
