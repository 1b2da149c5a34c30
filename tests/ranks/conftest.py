"""Every test here starts real processes; none of them may be left when it ends."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest
from rank_helpers import ROOT, foreground, ours


@pytest.fixture(autouse=True)
def nothing_left_running():
    before = ours()
    yield
    patience = time.monotonic() + 20  # a busy machine takes its time
    while left := {pid: command for pid, command in ours().items() if pid not in before}:
        if time.monotonic() > patience:
            for pid in left:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, 9)
            pytest.fail(f"processes were left running: {left}")
        time.sleep(0.05)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """An empty folder for one launch."""
    path = tmp_path / "run"
    path.mkdir()
    return path


@pytest.fixture
def script(tmp_path: Path):
    """Start an interpreter with a script of its own; it is killed if the test leaves it running."""
    started: list[subprocess.Popen] = []

    def start(text: str, *arguments: str, env: dict[str, str] | None = None, **how) -> subprocess.Popen:
        path = tmp_path / f"script{len(started)}.py"
        path.write_text(text)
        paths = os.pathsep.join([str(ROOT), str(Path(__file__).parent)])
        process = subprocess.Popen(
            [sys.executable, *arguments, str(path)],
            cwd=tmp_path,
            env={**os.environ, "PYTHONPATH": paths, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            **{"preexec_fn": foreground, **how},
        )
        started.append(process)
        return process

    yield start
    for process in started:
        process.kill()
        process.wait()
        for stream in (process.stdout, process.stderr):
            stream.close()
