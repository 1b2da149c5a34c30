"""One lab over several machines: an agent of torchrun on each, by hand and under Slurm. The machines are network stacks."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from rank_helpers import ROOT

import labkit
from labkit.ranks.hosts import hosts
from labkit.ranks.links import links
from labkit.record.store import read_record

pytestmark = [pytest.mark.ranks, pytest.mark.slow]

# each machine has its own name, and knows the others by theirs, as on a cluster
AS_MACHINE = 'hostname "$1"; mount --bind "$2" /etc/hosts; shift 2; exec "$@"'
TORCHRUN = Path(sys.executable).parent / "torchrun"
PORT = 29_400  # of a network that nobody else is in


class Machines:
    """Two machines, and commands to run on them."""

    def __init__(self, up, names_file: Path, folder: Path) -> None:
        self._up, self._names_file, self._folder = up, names_file, folder
        self.environment = {
            **os.environ,
            "PYTHONPATH": str(ROOT),
            "LABKIT_CACHE": str(folder / "cache"),
            "OMP_NUM_THREADS": "1",
        }

    def command(self, number: int, argv: list[str]) -> list[str]:
        shell = ["sh", "-e", "-c", AS_MACHINE, "sh", f"host-{number}", str(self._names_file)]
        return self._up.command(number, ["unshare", "--uts", "--mount", *shell, *argv])

    def run(self, argv: list[str], **env: str) -> list[subprocess.CompletedProcess]:
        """The same command on both at once, to its end."""
        started = [
            subprocess.Popen(
                self.command(number, argv),
                cwd=self._folder,
                env={**self.environment, **env},
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.PIPE,
                text=True,
            )
            for number in range(2)
        ]
        try:
            outputs = [process.communicate(timeout=90) for process in started]
        finally:
            for process in started:
                process.kill()
                process.wait()
        return [subprocess.CompletedProcess(argv, p.returncode, *out) for p, out in zip(started, outputs, strict=True)]


@pytest.fixture
def machines(tmp_path):
    with hosts(links(2, 2, "400mbit")) as up:
        if up.network.way == "emulated":
            pytest.skip(f"this machine permits no network stacks: {up.network.reason}")
        names = tmp_path / "hosts"
        names.write_text("127.0.0.1 localhost\n" + "".join(f"{up.address(n)} host-{n}\n" for n in range(2)))
        yield Machines(up, names, tmp_path)


def torchrun(*more: str, ranks: int = 2) -> list[str]:
    meeting = ["--rdzv-backend", "c10d", "--rdzv-id", "test", "--rdzv-endpoint", f"host-0:{PORT}"]
    return [str(TORCHRUN), "--nnodes", "2", "--nproc-per-node", str(ranks), *meeting, "--monitor-interval", "0.1", *more]


def weights(record):
    return [log.digests["weights"] for log in record.run.ranks]


def test_two_machines_give_what_one_gives(machines, tmp_path, monkeypatch):
    lab = ["-m", "labkit", "run", "duplicate-data", "--variant", "fixed", "--epochs", "1", "--record", "kept"]
    ended = machines.run(torchrun(*lab))
    assert [one.returncode for one in ended] == [0, 0], ended
    printed = [one.stdout for one in ended]
    assert sorted(map(bool, printed)) == [False, True]  # rank 0's machine alone reports
    joined = read_record(tmp_path / "kept")
    assert sorted(log.head.host for log in joined.run.ranks) == ["host-0", "host-0", "host-1", "host-1"]
    assert [log.head.local_rank for log in joined.run.ranks] == [0, 1, 0, 1]
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "other"))
    alone = labkit.lab("duplicate-data").run("fixed", ranks=4, epochs=1)
    assert weights(joined) == weights(alone)


RESTARTS = """
import labkit
lab = labkit.lab("duplicate-data")
fault = labkit.Fault(kind="kill", rank=1, step=2)
record = lab.run("fixed", epochs=1, faults=[fault], record_dir="kept")
if record is not None:
    print("attempts", record.run.attempts, lab.judge(record)[0].status)
"""


def test_a_rank_killed_on_another_machine_is_restarted_and_the_run_comes_to_its_end(machines, tmp_path):
    """With a store of the ranks' own. With torchrun's, its default, a restart may read the addresses of the dead."""
    (tmp_path / "script.py").write_text(RESTARTS)
    again = torchrun("--max-restarts", "3", "script.py", ranks=1)
    ended = machines.run(again, TORCH_DISABLE_SHARE_RDZV_TCP_STORE="1")
    assert [one.returncode for one in ended] == [0, 0], ended
    assert "attempts 2 clear\n" in [one.stdout for one in ended]


SRUN = """#!/bin/sh
# what srun does with --ntasks-per-node=1: the command once on each node of the job
[ "$1" = --ntasks-per-node=1 ] || exit 9
shift
{starts}
status=0
for process in $started; do wait "$process" || status=$?; done
exit $status
"""


def test_the_slurm_script_runs_as_written(machines, tmp_path):
    """Slurm's two commands are stood in for; the script is the one that the README names."""
    tools = tmp_path / "tools"
    tools.mkdir()
    starts = []
    for number in range(2):
        quoted = " ".join(f"'{word}'" for word in machines.command(number, []))
        starts.append(f'SLURM_NODEID={number} {quoted} "$@" & started="$started $!"')
    (tools / "srun").write_text(SRUN.format(starts="\n".join(starts)))
    (tools / "scontrol").write_text('#!/bin/sh\n[ "$*" = "show hostnames host-[0-1]" ] && printf "host-0\\nhost-1\\n"\n')
    for tool in tools.iterdir():
        tool.chmod(0o755)
    (tmp_path / ".venv").symlink_to(Path(sys.executable).parent.parent)
    lab = ["duplicate-data", "--variant", "fixed", "--steps", "4", "--record", "kept"]
    ended = subprocess.run(
        ["bash", str(ROOT / "scripts" / "slurm.sh"), *lab],
        cwd=tmp_path,
        env={
            **machines.environment,
            "PATH": f"{tools}:{os.environ['PATH']}",
            "SLURM_JOB_ID": "4711",
            "SLURM_JOB_NUM_NODES": "2",
            "SLURM_JOB_NODELIST": "host-[0-1]",
            "RANKS_PER_NODE": "1",
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=100,
    )
    assert ended.returncode == 0, ended.stderr
    record = read_record(tmp_path / "kept")
    assert sorted(log.head.host for log in record.run.ranks) == ["host-0", "host-1"]
    assert all(len(log.steps) == 4 for log in record.run.ranks)


def test_the_machines_of_these_tests_are_not_this_one(machines):
    says = "import socket; print(socket.gethostname(), socket.gethostbyname('host-1'))"
    ended = machines.run([sys.executable, "-c", says])
    assert [one.stdout for one in ended] == ["host-0 10.77.0.2\n", "host-1 10.77.0.2\n"]
    assert socket.gethostname() not in ("host-0", "host-1")
