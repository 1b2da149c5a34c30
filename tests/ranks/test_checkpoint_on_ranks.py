"""Checkpoints of several ranks: whole on all or on none, on a full disk and on one that cannot be written too."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys

import checkpoint_programs as programs
import pytest
from rank_helpers import ROOT

from labkit.ranks.launch import launch

pytestmark = pytest.mark.ranks


@pytest.fixture
def run(tmp_path):
    """Launch a program in a folder of its own."""
    count = iter(range(100))

    def run(program, config, *, ranks=2):
        folder = tmp_path / f"run{next(count)}"
        folder.mkdir()
        return launch(program, config, ranks=ranks, folder=folder, deadline_s=60).values

    return run


@pytest.mark.parametrize("ranks", [1, 2, 3])
def test_each_rank_gets_its_own_back_and_all_the_shared(run, tmp_path, ranks):
    values = run(programs.saves_and_restores, str(tmp_path / "kept"), ranks=ranks)
    assert values == tuple((4, 4, {"rank": rank}, ranks, [3, 4]) for rank in range(ranks))


@pytest.mark.parametrize(("before", "after"), [(3, 2), (2, 3)])
def test_another_number_of_ranks_can_read_it_and_new_ones_have_nothing_of_their_own(run, tmp_path, before, after):
    run(programs.saves_and_restores, str(tmp_path / "kept"), ranks=before)
    values = run(programs.restores, str(tmp_path / "kept"), ranks=after)
    own = [{"rank": rank} if rank < before else None for rank in range(after)]
    assert values == tuple((4, own[rank], before) for rank in range(after))


def test_what_ranks_call_shared_and_hold_differently_is_refused_on_all(run, tmp_path):
    said = run(programs.calls_its_own_shared, str(tmp_path / "kept"))
    assert len(set(said)) == 1 and "different values of shared.model.bias" in said[0]
    assert list((tmp_path / "kept").iterdir()) == []


def test_a_rank_that_fails_alone_fails_the_save_on_all(run, tmp_path):
    said = run(programs.holds_what_is_not_data, str(tmp_path / "kept"))
    assert len(set(said)) == 1 and said[0].startswith("rank 1: state.f is a builtin")


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 1)])
def test_shards_are_read_by_another_number_of_ranks(run, tmp_path, before, after):
    saved = run(programs.shards, (str(tmp_path / "kept"), True), ranks=before)
    read = run(programs.shards, (str(tmp_path / "kept"), False), ranks=after)
    assert {json.dumps(one) for one in saved} == {json.dumps(one) for one in read}


ON_A_DISK_OF_ITS_OWN = """
import json, subprocess, sys
from pathlib import Path
import checkpoint_programs as programs
from labkit.ranks.launch import launch

kept, runs = Path(sys.argv[1]), Path(sys.argv[2])
for name in ("full", "readonly"):
    (runs / name).mkdir()
full = launch(programs.fills_the_disk, str(kept), ranks=2, folder=runs / "full", deadline_s=60).values
subprocess.run(["mount", "-o", "remount,ro", str(kept)], check=True)
readonly = launch(programs.writes_where_it_may_not, str(kept), ranks=2, folder=runs / "readonly", deadline_s=60).values
print(json.dumps([full, readonly]))
"""


def test_a_full_disk_and_one_that_is_read_only_lose_nothing(tmp_path):
    """On a small file system of its own, mounted where nobody else sees it."""
    enter = ["unshare", "-m"] if os.geteuid() == 0 else ["unshare", "-Urm"]
    if not shutil.which("unshare") or subprocess.run([*enter, "true"], capture_output=True).returncode:
        pytest.skip("this machine lets nobody have a mount of their own")
    disk, script = tmp_path / "disk", tmp_path / "script.py"
    disk.mkdir()
    script.write_text(ON_A_DISK_OF_ITS_OWN)
    mount = f'mount -t tmpfs -o size=1m none "{disk}" && exec "{sys.executable}" "{script}" "{disk}" "{tmp_path}"'
    paths = os.pathsep.join([str(ROOT), str(ROOT / "tests" / "ranks")])
    done = subprocess.run([*enter, "sh", "-c", mount], capture_output=True, text=True, timeout=100,
                          env={**os.environ, "PYTHONPATH": paths})  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    full, readonly = json.loads(done.stdout.splitlines()[-1])
    for said, left, step in full:
        assert len(said) == 2 and step == 1 and left == ["step-00000001"]
        for text in said:
            assert "No space left on device; free space there" in text and "the last good one is of step 1" in text
    for text, step in readonly:
        assert "Read-only file system; choose a folder that can be written" in text and step == 1
