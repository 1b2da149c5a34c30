"""The store: a real server that wants a token, on a host of its own or on loopback, and that ends with its owner."""

import http.client
import os
import signal
import tempfile
from dataclasses import dataclass

import psutil
import pytest
from rank_helpers import wait_until

from labkit.errors import LaunchError
from labkit.ranks import data_store
from labkit.ranks.data_store import bring_up
from labkit.ranks.links import Links

pytestmark = pytest.mark.ranks


@dataclass(frozen=True)
class Holds:
    rate_bits_per_s: float = 200e6
    item_bytes: int = 4
    emulate: bool = True

    def items(self) -> bytes:
        return b"zero" + b"one " + b"two "


def ask(store, path, token=None):
    connection = http.client.HTTPConnection(store.host, store.port, timeout=20)
    try:
        connection.request("GET", path, headers={"Authorization": f"Bearer {store.token if token is None else token}"})
        answer = connection.getresponse()
        return answer.status, answer.read()
    finally:
        connection.close()


def servers_of(pid):
    children = psutil.Process(pid).children(recursive=True)
    return [p for p in children if not gone(p) and "data_store_server" in " ".join(p.cmdline())]


def gone(process):
    try:
        return process.status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


@pytest.fixture(scope="module")
def store():
    with bring_up(None, Holds()) as up:
        yield up.data_store


def test_items_come_in_the_order_in_which_they_are_asked_for(store):
    assert ask(store, "/items?ids=2,0") == (200, b"two zero")
    assert store.host == "127.0.0.1" and store.item_bytes == 4


@pytest.mark.parametrize(
    ("path", "token", "status"),
    [
        ("/items?ids=0", "", 401),
        ("/items?ids=0", "a guess", 401),
        ("/items?ids=3", None, 404),
        ("/items?ids=-1", None, 404),
        ("/elsewhere?ids=0", None, 404),
        ("/items", None, 400),
        ("/items?ids=one", None, 400),
    ],
)
def test_what_it_does_not_give_it_says(store, path, token, status):
    assert ask(store, path, token)[0] == status


def test_a_client_that_goes_away_in_the_middle_does_no_harm(store):
    connection = http.client.HTTPConnection(store.host, store.port, timeout=20)
    connection.request("GET", "/items?ids=" + ",".join(["1"] * 5000), headers={"Authorization": f"Bearer {store.token}"})
    connection.close()
    assert ask(store, "/items?ids=1")[0] == 200


def test_it_is_gone_when_the_context_ends_and_its_file_never_had_a_name(tmp_path, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    before = servers_of(os.getpid())
    with bring_up(None, Holds()) as up:
        (server,) = set(servers_of(os.getpid())) - set(before)
        assert up.seats.holder_pid == 0 and ask(up.data_store, "/items?ids=1") == (200, b"one ")
        assert not list(tmp_path.iterdir()), "whatever ends this process, nothing is left"
    assert not psutil.pid_exists(server.pid)


def test_behind_a_link_it_is_on_a_host_of_its_own_and_ranks_of_one_host_can_reach_it():
    with bring_up(None, Holds(emulate=False)) as up:
        if up.storage.way == "emulated":
            pytest.skip(up.storage.reason)
        assert up.network is None and up.data_store.host == "10.77.0.2"
        assert up.storage.achieved_bits_per_s > 0
        seats = up.seats_for(4, group=True, reads_data_store=True)
        assert seats.network.hosts == 1 and up.seats_for(4, group=True, reads_data_store=False) is None


def test_beside_ranks_on_two_hosts_it_is_on_the_third():
    with bring_up(Links(hosts=2, rate_bits_per_s=400e6), Holds(emulate=False)) as up:
        if up.storage.way == "emulated":
            pytest.skip(up.storage.reason)
        assert up.data_store.host == "10.77.0.3" and up.network.hosts == 2 and len(up.seats.fds) == 3
        assert up.seats_for(2, group=True, reads_data_store=True) is up.seats
        assert up.seats_for(1, group=False, reads_data_store=True).network.hosts == 1
        assert up.seats_for(1, group=False, reads_data_store=False) is None


@pytest.mark.parametrize("emulate", [True, False], ids=["loopback", "link"])
def test_a_killed_owner_takes_its_server_along(script, emulate):
    owner = script(f"""
import sys, time
sys.path.insert(0, {os.path.dirname(__file__)!r})
from test_data_store import Holds, bring_up
with bring_up(None, Holds(emulate={emulate})) as up:
    print("up", flush=True)
    time.sleep(60)
""")
    assert owner.stdout.readline() == "up\n"
    servers = servers_of(owner.pid)
    assert len(servers) == 1
    owner.send_signal(signal.SIGKILL)
    wait_until(lambda: all(gone(server) for server in servers), within_s=10, what="the server ends")


def test_a_server_that_does_not_come_up_is_an_error_with_its_reason(monkeypatch, tmp_path):
    broken = tmp_path / "server.py"
    broken.write_text("raise SystemExit('no such luck')")
    monkeypatch.setattr(data_store, "_SERVER", broken)
    with pytest.raises(LaunchError, match="no such luck"), bring_up(None, Holds()):
        pass
