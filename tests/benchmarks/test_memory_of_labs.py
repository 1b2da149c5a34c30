"""What memory a lab takes at its defaults: what an instructor plans a room with. Ranks share pages, so shares are added."""

from __future__ import annotations

import contextlib
import sys
import threading

import psutil
import pytest

from labkit.facade import Lab
from labkit.labs import slugs, spec

pytestmark = [pytest.mark.benchmark, pytest.mark.skipif(sys.platform != "linux", reason="only Linux tells shares of pages")]

ENOUGH_BYTES = 2e9
"""Of the 4 GB that INSTRUCTOR asks for; the rest is for JupyterLab and a browser."""


def share_bytes() -> int:
    """Memory of this process and all that it started; a page that several hold counts for each by its part."""
    found, own = 0, psutil.Process()
    for process in (own, *own.children(recursive=True)):
        with contextlib.suppress(psutil.Error):
            found += process.memory_full_info().pss
    return found


@pytest.mark.parametrize("slug", slugs())
def test_a_lab_at_its_defaults_leaves_half_of_four_gigabytes(slug, tmp_path, monkeypatch, capsys):
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))
    done, most = threading.Event(), [share_bytes()]

    def look() -> None:
        while not done.wait(0.05):
            most[0] = max(most[0], share_bytes())

    looking = threading.Thread(target=look)
    looking.start()
    try:
        Lab(spec(slug)).run(device="cpu", record_dir=tmp_path / "record")
    finally:
        done.set()
        looking.join()
    with capsys.disabled():
        print(f"\n{slug}: {most[0] / 1e9:.2f} GB at the most")
    assert most[0] < ENOUGH_BYTES
