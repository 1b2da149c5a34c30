"""Ranks that would fill the memory are ended before, by name; the launching process goes on."""

from __future__ import annotations

import contextlib
import json
import uuid
from functools import partial
from pathlib import Path

import psutil
import pytest
import rank_programs as programs
from rank_helpers import wait_until

from labkit.errors import OutOfMemory
from labkit.ranks import memory
from labkit.ranks.launch import launch

pytestmark = pytest.mark.ranks
MIB = 2**20


def taken() -> int:
    """Bytes that the processes below this one hold."""
    found = 0
    for process in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.Error):
            found += process.memory_info().rss
    return found


def test_ranks_that_would_fill_the_memory_are_ended_and_the_error_says_what_each_held(folder, monkeypatch):
    before = taken()
    monkeypatch.setattr(memory, "total_and_left", lambda: (4096 * MIB, 2048 * MIB - (taken() - before)))
    with pytest.raises(
        OutOfMemory, match="ended before they filled the memory.*of 4.3 GB were left.*smaller sizes"
    ) as caught:
        launch(programs.takes_memory, 4096 * MIB, ranks=2, folder=folder)
    assert set(caught.value.ranks) == {0, 1}
    assert all(report.state == "ended" and " GB, in step " in report.message for report in caught.value.ranks.values())
    assert taken() - before < 600 * MIB, "the ranks are gone"


def test_ranks_are_left_alone_where_others_took_the_memory(folder, monkeypatch):
    answers = iter([(64 * 1024 * MIB, 32 * 1024 * MIB)])
    monkeypatch.setattr(memory, "total_and_left", lambda: next(answers, (64 * 1024 * MIB, 1 * MIB)))
    assert launch(programs.takes_memory, 64 * MIB, ranks=2, folder=folder).values == (64 * MIB, 64 * MIB)


IN_A_GROUP = """
import json, os, sys
from pathlib import Path

Path(sys.argv[1], "cgroup.procs").write_text(str(os.getpid()))
import rank_programs
from labkit.errors import OutOfMemory
from labkit.ranks.launch import launch

Path("run").mkdir()
try:
    launch(rank_programs.takes_memory, 4 * 2**30, ranks=2, folder=Path("run"))
except OutOfMemory as error:
    print(json.dumps(str(error)))
"""


def removed(group: Path) -> bool:
    with contextlib.suppress(OSError):  # busy: something still runs in it
        group.rmdir()
    return not group.exists()


@pytest.fixture
def group():
    """A control group with 2 GiB of memory, where this user may make one."""
    for mount, limit in (("/sys/fs/cgroup/memory", "memory.limit_in_bytes"), ("/sys/fs/cgroup", "memory.max")):
        path = Path(mount, f"labkit-test-{uuid.uuid4().hex[:8]}")
        try:
            path.mkdir()
            (path / limit).write_text(str(2048 * MIB))
        except OSError:
            with contextlib.suppress(OSError):
                path.rmdir()
            continue
        yield path
        wait_until(partial(removed, path), what="the end of all that ran in the group")
        return
    pytest.skip("this user may make no control group with a limit on memory")


def test_the_limit_of_a_container_is_met_and_its_other_processes_live_on(script, group):
    process = script(IN_A_GROUP.replace("sys.argv[1]", repr(str(group))))
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, err[-2000:]
    assert "of 2.1 GB were left" in json.loads(out)


def group_files(root: Path, folder: str, **files: str) -> None:
    """Write the files of one control group. In a keyword `__` stands for a dot."""
    path = root / "sys/fs/cgroup" / folder
    path.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (path / name.replace("__", ".")).write_text(text)


def own_groups(root: Path, lines: str) -> None:
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(lines)


def test_the_tightest_of_the_groups_around_this_process_counts_and_idle_cache_can_be_taken(tmp_path):
    own_groups(tmp_path, "0::/user.slice/me\n")
    stat = f"anon 1\ninactive_file {30 * MIB}\n"
    group_files(tmp_path, "user.slice", memory__max=f"{100 * MIB}\n", memory__current=f"{90 * MIB}\n", memory__stat=stat)
    group_files(tmp_path, "user.slice/me", memory__max="max\n", memory__current=f"{80 * MIB}\n", memory__stat="anon 1\n")
    assert memory.total_and_left(tmp_path) == (100 * MIB, 40 * MIB)


def test_the_first_version_of_control_groups_is_read_too(tmp_path):
    own_groups(tmp_path, "3:cpuset:/\n4:memory:/a/group/of/the/host\n0::/\n")
    limits = {"memory__limit_in_bytes": f"{50 * MIB}\n", "memory__usage_in_bytes": f"{45 * MIB}\n"}
    group_files(tmp_path, "memory", **limits, memory__stat=f"total_inactive_file {1 * MIB}\n")
    assert memory.total_and_left(tmp_path) == (50 * MIB, 6 * MIB)


@pytest.mark.parametrize("own", ["0::/\n", "", None])
def test_without_a_limit_it_is_the_machine_that_counts(tmp_path, own):
    if own is not None:
        own_groups(tmp_path, own)
    total, left = memory.total_and_left(tmp_path)
    assert total == psutil.virtual_memory().total and 0 < left <= total
