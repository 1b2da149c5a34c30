"""The command line in this process: what it prints and how it ends, without Python and torch started for each command.

What only a process proves is left to processes: signals, pipes, the terminal's letters, torchrun, and that nobody but
labkit writes on its standard output.
"""

import contextlib
import io
import subprocess
import sys
from pathlib import Path
from unittest import mock

from labkit.__main__ import main

ROOT = Path(__file__).resolve().parents[1]


def labkit(*words, cwd: Path = ROOT) -> subprocess.CompletedProcess:
    """Run `labkit` with these words, in the environment of this process."""
    given = ["labkit", *map(str, words)]
    out, err = (io.TextIOWrapper(io.BytesIO(), encoding="utf-8", write_through=True) for _ in range(2))
    code = 0
    with (
        contextlib.chdir(cwd),
        contextlib.redirect_stdout(out),
        contextlib.redirect_stderr(err),
        mock.patch.object(sys, "argv", given),
    ):
        try:
            main()
        except SystemExit as end:
            code = end.code or 0
    printed, said = (stream.buffer.getvalue().decode() for stream in (out, err))
    return subprocess.CompletedProcess(given, code, printed, said)
