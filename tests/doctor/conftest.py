"""What the doctor says of a script, run on real ranks."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest
import warm

from labkit.detect.verdict import Verdict
from labkit.doctor import lessons
from labkit.doctor.diagnosis import Diagnosis
from labkit.doctor.diagnosis import examine as examined
from labkit.doctor.launch import Ended


@dataclass(frozen=True)
class Examined:
    """How a script ended, and what each detector says of it."""

    ended: Ended
    verdicts: dict[str, Verdict]
    diagnosis: Diagnosis | None = None

    @property
    def found(self) -> dict[str, Verdict]:
        return self._answered("found")

    @property
    def undecided(self) -> dict[str, Verdict]:
        return self._answered("inconclusive")

    def _answered(self, status: str) -> dict[str, Verdict]:
        return {f"{v.detector}/{v.reason}": v for v in self.verdicts.values() if v.status == status}

    @property
    def updates(self) -> int:
        assert self.diagnosis is not None
        return lessons.updates(self.diagnosis)

    def said(self, name: str) -> tuple[str, str]:
        return self.verdicts[name].status, self.verdicts[name].reason


@pytest.fixture
def examine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., Examined]:
    """Run a script on warm ranks, from its own folder, and ask every detector."""

    def of(script: Path, *arguments: str, ranks: int = 2, steps: int | None = None, still_s: float = 5.0) -> Examined:
        monkeypatch.chdir(script.parent)
        folder = tmp_path / f"record-{len(list(tmp_path.glob('record-*')))}"
        seen = examined(
            [script.name, *arguments],
            ranks=ranks,
            steps=steps,
            record=folder,
            deadline_s=90.0,
            still_s=still_s,
            start=warm.start,
        )
        return Examined(seen.ended, {verdict.detector: verdict for verdict in seen.verdicts}, seen)

    return of
