"""The records that a deck is drawn from: shipped recordings, or runs made while it is built and kept for the next build."""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import labkit
from labkit.errors import RecordError, UnknownName, UsageError
from labkit.record import store
from labkit.record.schema import Record

PACKAGE = Path(labkit.__file__).parent


@functools.cache
def package_digest() -> str:
    """Changes with every line of labkit, so that a record made by other code is made again."""
    digest = hashlib.sha256()
    for path in sorted(PACKAGE.rglob("*.py")):
        digest.update(path.read_bytes())
    return digest.hexdigest()


class Records:
    """What one deck declared, by name.

    Attributes:
        lab: the lab that ran.
        by_name: its records.
    """

    def __init__(self, slug: str, plans: Mapping[str, Mapping[str, Any]], *, kept: Path, quick: bool, fresh: bool) -> None:
        """Run what is not there yet.

        Args:
            slug: of the lab.
            plans: name -> the keywords of `Lab.run`, and beside them `quick`, keywords that take their place in a quick
                build, or `recording`, the name of a shipped recording, alone.
            kept: a folder in which records wait for the next build.
            quick: make small runs, as tests do.
            fresh: make runs again that are kept.
        """
        self.lab: Any = labkit.lab(slug)
        self.slug = slug
        self.by_name = {name: self._record(name, dict(plan or {}), kept, quick, fresh) for name, plan in plans.items()}

    def _record(self, name: str, plan: dict[str, Any], kept: Path, quick: bool, fresh: bool) -> Record:
        if "recording" in plan:
            shipped = {record.folder.name: record for record in self.lab.recordings() if record.folder}
            if plan["recording"] not in shipped:
                raise UnknownName(f"recording of {self.slug}", plan["recording"], shipped)
            return shipped[plan["recording"]]
        return self.kept_or_made(name, plan, kept, quick, fresh)

    def completed(self, name: str, plan: dict[str, Any]) -> dict[str, Any]:
        """All that decides what a run is."""
        return {"variant": name if any(v.name == name for v in self.lab.spec.variants) else None, **plan}

    def make(self, name: str, plan: dict[str, Any], folder: Path) -> Record:
        """Run it, into a folder that is not there yet."""
        return self.lab.run(record_dir=folder, **plan)

    def kept_or_made(self, name: str, plan: dict[str, Any], kept: Path, quick: bool, fresh: bool) -> Record:
        """The record of the last build, or a new one."""
        small = plan.pop("quick", None) or {}
        plan = self.completed(name, plan) | (small if quick else {})
        folder = kept / self.slug / f"{name}-{key_of(plan)}"
        if fresh:
            shutil.rmtree(folder, ignore_errors=True)
        if (folder / "record.json").is_file():
            with contextlib.suppress(RecordError):  # damaged since: made again
                return store.read_record(folder / "record.json")
        shutil.rmtree(folder, ignore_errors=True)  # of a build that was interrupted
        folder.parent.mkdir(parents=True, exist_ok=True)
        print(f"  {self.slug}: running {name} {_said(plan)}", flush=True)
        return self.make(name, plan, folder)

    def named(self, names: str | None) -> list[Record]:
        """The records that a directive asks for, "broken fixed", or all.

        Raises:
            UnknownName: with the names there are.
        """
        return list(self.by_name.values()) if not names else [self.record(name) for name in names.replace(",", " ").split()]

    def record(self, name: str) -> Record:
        if name not in self.by_name:
            raise UnknownName(f"record of this deck ({self.slug})", name, self.by_name)
        return self.by_name[name]

    def quantity(self, path: str) -> tuple[str, list[Record]]:
        """A number as a sentence says it, and the records that it comes from.

        Args:
            path: "record.measure", or "record.measure / record.measure" for a ratio.

        Raises:
            UnknownName, UsageError: a wrong name, or a ratio of what is no number.
        """
        found = [self._one(part.strip()) for part in path.split("/")]
        sources = dict.fromkeys(quantity.source for quantity, _ in found if quantity.source)
        marked = f" ({', '.join(sources)})" if sources else ""
        if len(found) == 1:
            return f"{found[0][0]}{marked}", [found[0][1]]
        try:
            above, below = (float(quantity.value) for quantity, _ in found)
            return f"{above / below:.3g}{marked}", [record for _, record in found]
        except (ValueError, TypeError, ZeroDivisionError):
            raise UsageError(f"no ratio: {path} is {' / '.join(str(q) for q, _ in found)}; give two numbers") from None

    def _one(self, path: str):
        name, dot, measure = path.partition(".")
        if not dot:
            raise UsageError(f"a number is named record.measure, as in broken.step_time_s; given {path!r}")
        record = self.record(name)
        measures = self.lab.measures(record)
        if measure not in measures:
            raise UnknownName(f"measure of {self.slug} / {name}", measure, measures)
        return measures[measure], record


def key_of(plan: Mapping[str, Any]) -> str:
    """Names a run by what it was asked for and by the code that ran it."""
    asked = json.dumps([plan, package_digest()], sort_keys=True, default=str)
    return hashlib.sha256(asked.encode()).hexdigest()[:12]


def _said(plan: Mapping[str, Any]) -> str:
    return " ".join(f"{name}={value}" for name, value in plan.items() if name not in ("variant", "source"))
