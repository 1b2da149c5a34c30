"""Hosts on one machine: real network stacks, links of the rate that was asked for, and nothing left behind."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from pathlib import Path

import host_programs as programs
import pytest
from rank_helpers import ROOT, wait_until

from labkit.errors import LaunchError, RankFailed, UsageError
from labkit.ranks import hosts as hosts_module
from labkit.ranks.board import started_ticks
from labkit.ranks.faults import Fault
from labkit.ranks.hosts import bytes_on, hosts
from labkit.ranks.launch import launch
from labkit.ranks.links import links

pytestmark = pytest.mark.ranks

NUM_FLOATS = 500_000


@pytest.fixture(scope="module")
def permitted() -> str:
    """How hosts can be had here; a test that needs real ones is skipped where there are none."""
    with hosts(links(2, 2, "1gbit")) as up:
        if up.network.way == "emulated":
            pytest.skip(f"this machine permits no network stacks: {up.network.reason}")
        return up.network.way


def stacks() -> set[str]:
    """The network stacks of this machine that some process is in."""
    found = set()
    for path in Path("/proc").glob("[0-9]*/ns/net"):
        try:
            found.add(os.readlink(path))
        except OSError:
            continue
    return found


@contextlib.contextmanager
def kept(holder: int) -> Iterator[set[str]]:
    """The network stacks that a process holds, as `stacks` names them.

    They are held open meanwhile: the kernel gives the number of one that is gone to the next, which may be another test's.
    """
    path = Path(f"/proc/{holder}")
    links = [path / "ns/net", *(link for link in path.glob("fd/*") if "net:" in os.readlink(link))]
    with contextlib.ExitStack() as held:
        yield {os.readlink(f"/proc/self/fd/{held.enter_context(link.open('rb')).fileno()}") for link in links}


@pytest.mark.parametrize(("ranks", "count"), [(2, 2), (3, 2), (3, 3), (4, 2)])
def test_ranks_meet_across_hosts_and_the_wire_carries_what_the_ring_says(folder, permitted, ranks, count):
    with hosts(links(ranks, count, "800mbit")) as up:
        seen = launch(programs.meets_on_a_host, NUM_FLOATS, ranks=ranks, folder=folder, seats=up.seats).values
    assert all(one["sum"] == sum(range(1, ranks + 1)) and one["equal"] for one in seen)
    assert [one["host"] for one in seen] == [f"host-{rank * count // ranks}" for rank in range(ranks)]
    assert all(one["own_address"] and one["source"] == "measured" for one in seen)
    assert [one["local_rank"] for one in seen][:2] == ([0, 0] if ranks == count else [0, 1])
    if ranks == count:  # one rank a host: the interface's counters are the rank's own
        expected = 2 * (ranks - 1) / ranks * NUM_FLOATS * 4
        assert [one["sent"] for one in seen] == pytest.approx([expected] * ranks, rel=0.01)


def test_the_rate_is_measured_and_is_the_one_that_was_asked_for(permitted):
    for rate in ("10mbit", "400mbit"):
        with hosts(links(2, 2, rate)) as up:
            assert up.network.way == permitted and up.network.source == "measured"
            # what limits is the kernel's token bucket, which holds under any load; the machine may be slower, not faster
            assert 0 < up.network.achieved_bits_per_s < 1.1 * up.network.rate_bits_per_s
    with hosts(links(2, 2, None)) as up:
        assert up.network.rate_bits_per_s == 0 and up.network.achieved_bits_per_s > 1e8


def test_a_command_runs_in_its_host_and_only_hosts_of_one_set_reach_each_other(permitted):
    listen = "import socket; s = socket.create_server(('{}', 5000)); print('up', flush=True); s.accept(); print('met')"
    call = "import socket; socket.create_connection(('{}', 5000), timeout=5); print('met')"
    with hosts(links(2, 2, "100mbit")) as one, hosts(links(2, 2, "100mbit")) as other:
        assert one.address(1) == other.address(1)
        server = subprocess.Popen(
            one.command(1, [sys.executable, "-c", listen.format(one.address(1))]), stdout=subprocess.PIPE, text=True
        )
        try:
            assert server.stdout.readline() == "up\n"
            calls = [
                subprocess.run(
                    up.command(0, [sys.executable, "-c", call.format(up.address(1))]), capture_output=True, text=True
                )
                for up in (other, one)
            ]
            assert "ConnectionRefusedError" in calls[0].stderr
            assert calls[1].stdout == "met\n", calls[1].stderr
            assert server.stdout.read() == "met\n"
        finally:
            server.kill()
            server.communicate()
        with pytest.raises(UsageError, match="from 0 to 1; given 2"):
            one.command(2, ["true"])


def test_nothing_is_left_after_use_nor_after_an_error(permitted):
    interfaces = Path("/proc/self/net/dev").read_text().count(":")
    for failing in (False, True):
        with contextlib.ExitStack() as held:
            try:
                with hosts(links(3, 3, "100mbit")) as up:
                    pid = up.seats.holder_pid
                    own = held.enter_context(kept(pid))
                    assert len(own) == 4 and os.readlink("/proc/self/ns/net") not in own
                    assert Path("/proc/self/net/dev").read_text().count(":") == interfaces
                    if failing:
                        raise KeyError("the user's own")
            except KeyError:
                assert failing
            assert not started_ticks(pid)
            assert not own & stacks()


OWNS = """
import sys
from pathlib import Path
import host_programs
from labkit.ranks.hosts import hosts
from labkit.ranks.launch import launch
from labkit.ranks.links import links

with hosts(links(2, 2, "100mbit")) as up:
    told = []
    def tell(progress):
        if progress.running == 2 and not told:
            told.append(print(up.seats.holder_pid, flush=True))
    Path("run").mkdir()
    launch(host_programs.sleeps, ranks=2, folder=Path("run"), seats=up.seats, on_progress=tell)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_hosts_die_with_their_owner_however_it_ends(script, permitted, number):
    process = script(OWNS)
    holder = int(process.stdout.readline())
    with kept(holder) as own:
        assert len(own) == 3 and own & stacks()  # ranks are in two of them
        process.send_signal(number)
        process.wait(timeout=60)
        wait_until(lambda: not started_ticks(holder) and not own & stacks(), within_s=20, what="the end of the hosts")


def test_ranks_whose_hosts_are_taken_away_end_with_a_named_error(folder, permitted):
    def take(progress):
        if progress.running == 2:
            os.kill(up.seats.holder_pid, signal.SIGKILL)

    with hosts(links(2, 2, "100mbit")) as up, pytest.raises(LaunchError, match="holds the hosts"):
        launch(programs.sleeps, ranks=2, folder=folder, seats=up.seats, on_progress=take)


def test_ranks_that_find_no_hosts_end_with_a_named_error(folder, permitted):
    with hosts(links(2, 2, "100mbit")) as up:
        pass
    with pytest.raises((LaunchError, RankFailed), match=r"holds (it may be gone|the hosts)|cannot be joined"):
        launch(programs.meets_on_a_host, 10, ranks=2, folder=folder, seats=up.seats)


def test_a_restarted_rank_takes_its_seat_again(folder, permitted):

    with hosts(links(2, 2, "100mbit")) as up:
        launched = launch(
            programs.reduces_in_steps,
            5,
            ranks=2,
            folder=folder,
            seats=up.seats,
            max_restarts=1,
            faults=(Fault(kind="kill", rank=1, step=2),),
        )
    assert launched.attempts == 2 and launched.faults_fired == 1


AS_USER = """
set -e
mount --bind "$BASE" "$HERE/base"
mount --bind "$PACKAGES" "$HERE/packages"
mount --bind "$REPOSITORY" "$HERE/labkit"
exec setpriv --reuid=65534 --regid=65534 --clear-groups --inh-caps=-all --bounding-set=-all \\
    "$HERE/base/bin/$PYTHON" "$HERE/script.py"
"""
USES_HOSTS = """
import json, os, tempfile
from pathlib import Path
import host_programs
from labkit.ranks.hosts import hosts
from labkit.ranks.launch import launch
from labkit.ranks.links import links

if __name__ == "__main__":
    with hosts(links(2, 2, "400mbit")) as up, tempfile.TemporaryDirectory() as folder:
        seen = launch(host_programs.meets_on_a_host, 500_000, ranks=2, folder=Path(folder), seats=up.seats).values
        print(json.dumps({"uid": os.getuid(), "way": up.network.way, "reason": up.network.reason, "seen": seen}))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="network namespaces are Linux's")
def test_an_ordinary_user_has_hosts_too(permitted, tmp_path):
    """Where the tests run as root, a user's own run is tried in a mount namespace in which that user may read everything."""
    if os.geteuid() != 0:
        assert permitted == "user"  # and then every test above was an ordinary user's
        return
    here = Path(tempfile.mkdtemp(prefix="labkit-user-"))  # pytest's own folders are closed to other users
    try:
        here.chmod(0o777)
        for name in ("base", "packages", "labkit", "home"):
            (here / name).mkdir(mode=0o777)
        (here / "home").chmod(0o777)
        (here / "script.py").write_text(USES_HOSTS)
        paths = [here / "labkit", here / "labkit" / "tests" / "ranks", here / "packages"]
        done = subprocess.run(
            ["unshare", "--mount", "sh", "-c", AS_USER],
            cwd=here,  # the present folder may be closed to that user
            env={
                "PATH": "/usr/bin:/bin",
                "HERE": str(here),
                "BASE": sys.base_prefix,
                "PACKAGES": sysconfig.get_path("purelib"),
                "REPOSITORY": str(ROOT),
                "LD_LIBRARY_PATH": str(here / "base" / "lib"),  # a shared libpython, if it is one
                "PYTHON": f"python{sys.version_info.major}.{sys.version_info.minor}",
                "PYTHONPATH": os.pathsep.join(map(str, paths)),
                "PYTHONDONTWRITEBYTECODE": "1",
                "HOME": str(here / "home"),
                "TMPDIR": str(here / "home"),
            },
            capture_output=True,
            text=True,
            timeout=100,
        )
    finally:
        shutil.rmtree(here, ignore_errors=True)
    assert done.returncode == 0, done.stderr
    said = json.loads(done.stdout)
    assert said["uid"] == 65534 and said["way"] == "user", said
    assert [one["sum"] for one in said["seen"]] == [3.0, 3.0]
    assert [one["sent"] for one in said["seen"]] == pytest.approx([2e6, 2e6], rel=0.01)
    assert [one["uid"] for one in said["seen"]] == [0, 0]  # root of its own namespace, and of nothing else


def test_where_namespaces_are_refused_the_link_is_emulated_and_says_why(monkeypatch):
    monkeypatch.setattr(hosts_module.shutil, "which", lambda tool, path=None: None)
    with hosts(links(2, 2, "100mbit")) as up:
        assert up.network.way == "emulated" and up.network.source == "simulated"
        assert "unshare and ip and tc not found" in up.network.reason
        assert up.network.achieved_bits_per_s == 0
        with pytest.raises(UsageError, match="emulated"):
            up.command(0, ["true"])


def test_a_holder_that_fails_is_no_failure_of_the_run(monkeypatch, tmp_path, permitted):
    broken = tmp_path / "holder.py"
    broken.write_text("raise SystemExit('no such thing here')")
    monkeypatch.setattr(hosts_module, "_HOLDER", broken)
    with hosts(links(2, 2, "100mbit")) as up:
        assert up.network.way == "emulated" and "no such thing here" in up.network.reason


def test_a_latency_is_had_or_refused_with_what_to_do(permitted):
    try:
        with hosts(links(2, 2, "100mbit", 20.0)) as up:
            assert up.network.latency_s == 0.02
    except UsageError as refused:
        assert "lacks netem" in str(refused) and "--emulate-link" in str(refused)


@pytest.mark.parametrize(("ranks", "count"), [(2, 2), (3, 2), (4, 4)])
def test_an_emulated_link_takes_as_long_as_the_ring_at_least(folder, ranks, count):
    with hosts(links(ranks, count, "100mbit", 1.0, emulate=True)) as up:
        seen = launch(programs.meets_on_a_host, 100_000, ranks=ranks, folder=folder, seats=up.seats).values
    wire_s = 2 * (ranks - 1) / ranks * 400_000 * 8 / 1e8 + 2 * (ranks - 1) * 1e-3
    assert all(one["seconds"] >= wire_s for one in seen)  # by construction: no load can make it shorter
    assert all(one["sum"] == sum(range(1, ranks + 1)) and one["equal"] for one in seen)
    assert all(one["sent"] is None and one["source"] == "simulated" for one in seen)


def test_ranks_of_one_host_pay_nothing_for_a_group_of_their_own(folder):
    with hosts(links(4, 2, "1mbit", emulate=True)) as up:
        seconds = launch(programs.reduces_within_its_host, 100_000, ranks=4, folder=folder, seats=up.seats).values
    assert max(seconds) < 3.2  # 400 kB at 1 Mbit/s; 3.2 s would be the ring's


@pytest.mark.parametrize("ranks", [2, 3, 4])
def test_an_emulated_group_gives_what_gloo_gives(tmp_path, ranks):
    results = []
    for emulate in (False, True):
        folder = tmp_path / f"run{emulate}"
        folder.mkdir()
        with hosts(links(ranks, 2, "1gbit", emulate=True)) as up:
            seats = up.seats if emulate else None
            results.append(launch(programs.tries_every_collective, ranks=ranks, folder=folder, seats=seats).values)
    assert results[0] == results[1]


def test_training_comes_out_equal_to_the_bit_on_any_network(tmp_path):
    hashes = []
    for name, asked in {"none": None, "real": links(2, 2, "1gbit"), "emulated": links(2, 2, "1gbit", emulate=True)}.items():
        (tmp_path / name).mkdir()
        if asked is None:
            hashes += launch(programs.trains_in_step, ranks=2, folder=tmp_path / name).values
            continue
        with hosts(asked) as up:
            hashes += launch(programs.trains_in_step, ranks=2, folder=tmp_path / name, seats=up.seats).values
    assert len(hashes) == 6 and len(set(hashes)) == 1


@pytest.mark.parametrize("emulate", [False, True])
def test_a_rank_that_raises_is_named_whatever_joins_the_hosts(folder, emulate):
    with hosts(links(3, 3, "100mbit", emulate=emulate)) as up, pytest.raises(RankFailed) as failed:
        launch(programs.waits_for_a_rank_that_raises, ranks=3, folder=folder, seats=up.seats)
    assert next(iter(failed.value.ranks)) == 1
    assert "no more of this" in failed.value.ranks[1].message
    assert all(failed.value.ranks[rank].state != "returned" for rank in (0, 2))  # none went on without it


def test_an_interface_that_is_not_there_has_no_bytes():
    assert bytes_on("no-such-interface") is None
    assert bytes_on("lo") is not None
