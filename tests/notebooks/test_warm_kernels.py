"""Kernels that are forked warm behave as those that Jupyter starts: where, with what, interrupted, killed, alone."""

import os
import time
from pathlib import Path

import pytest
from busy_cores import runs
from jupyter_client.manager import start_new_kernel
from warm_kernels import connected, warm_kernels

pytestmark = [pytest.mark.ranks, pytest.mark.timeout(240)]

STATE = """
import os, sys
loaded = sorted({name.partition(".")[0] for name in sys.modules} & {"torch", "labkit"})
print([os.getpid(), os.getcwd(), os.environ["ASKED"], loaded, sys.argv[0], __name__])
"""
RANKS = """
import tempfile, labkit
from labkit.ranks.launch import launch
print(launch(lambda context: (context.rank, os.getppid()), ranks=2, folder=tempfile.mkdtemp()).values)
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    with warm_kernels(tmp_path_factory.mktemp("warm")) as folder:
        yield folder


@pytest.fixture
def kernel(folder, tmp_path, monkeypatch):
    """A kernel, and a function that executes code in it: what it printed, or the name of what it raised."""
    monkeypatch.setenv("JUPYTER_PATH", str(folder))
    monkeypatch.setenv("ASKED", "for")
    manager, client = start_new_kernel(cwd=str(tmp_path), startup_timeout=120)

    def said(code: str, *, then=lambda: None) -> str:
        found = []

        def keep(message):
            kind, content = message["msg_type"], message["content"]
            if kind == "status" and content["execution_state"] == "busy":
                then()
            if kind in ("stream", "error"):
                found.append(content.get("ename") or content["text"])

        client.execute_interactive(code, output_hook=keep, timeout=120)
        return "".join(found)

    yield manager, said
    client.stop_channels()
    manager.shutdown_kernel(now=True)


def gone(pid: int) -> bool:
    patience = time.monotonic() + 30
    while runs(pid):
        if time.monotonic() > patience:
            return False
        time.sleep(0.02)
    return True


def test_it_runs_where_it_is_asked_with_torch_and_without_labkit_and_goes_when_it_is_told(kernel, tmp_path):
    manager, said = kernel
    pid, *rest = eval(said(STATE))
    assert rest == [str(tmp_path), "for", ["torch"], "ipykernel_launcher", "__main__"] and pid != os.getpid()
    values = eval(said(RANKS))
    assert [rank for rank, _ in values] == [0, 1] and len({server for _, server in values} - {pid}) == 1
    server = values[0][1]
    manager.shutdown_kernel(now=True)
    assert gone(pid) and gone(server)


def test_an_interrupt_reaches_it_and_a_restart_gives_another(kernel):
    manager, said = kernel
    pid = eval(said(STATE))[0]
    assert said("import time; time.sleep(60)", then=manager.interrupt_kernel) == "KeyboardInterrupt"
    assert eval(said(STATE))[0] == pid
    manager.restart_kernel(now=True)
    assert gone(pid)


def test_one_that_dies_takes_its_stand_in_along(kernel):
    manager, said = kernel
    os.kill(eval(said(STATE))[0], 9)
    assert gone(manager.provisioner.pid) or manager.provisioner.process.poll() == -9


def test_nobody_serves_once_nobody_keeps_it(tmp_path):
    with warm_kernels(tmp_path):
        path = Path(tmp_path) / "nursery"
        with warm_kernels(tmp_path):  # as another worker does
            pass
        keeper = connected(path)
        assert keeper is not None
    keeper.close()
    patience = time.monotonic() + 30
    while path.exists() and time.monotonic() < patience:
        time.sleep(0.02)
    assert not path.exists()
