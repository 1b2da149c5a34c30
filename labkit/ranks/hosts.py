"""Hosts on one machine: a network stack each, joined by links of a chosen rate (Linux).

As root, or as an ordinary user where the system lets users have namespaces of their own. Where neither is permitted, in
many containers, the links are emulated (`emulated.py`), and everything says so.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..errors import LaunchError, UsageError
from ..record.schema import Network, Way
from .board import started_ticks
from .holder import CLONE_NEWNET, INTERFACE, address
from .links import Links, host_of

_CLONE_NEWUSER = 0x10000000
_HOLDER = Path(__file__).with_name("holder.py")
_PATIENCE_S = 20.0
_SYSTEM_TOOLS = "/usr/sbin:/sbin:/usr/bin:/bin"


@dataclass(frozen=True)
class Seats:
    """Where the ranks of one launch sit, as plain data that travels to them.

    Attributes:
        network: what the hosts and links are.
        holder_pid: the process that holds the network stacks; 0 where they are emulated.
        holder_started: when it started, in the kernel's ticks: a process number may be given out again.
        fds: under which number it holds each host's.
    """

    network: Network
    holder_pid: int = 0
    holder_started: int = 0
    fds: tuple[int, ...] = ()

    @property
    def are_gone(self) -> bool:
        """Whether the process that held the network stacks has ended, and the links with it."""
        return self.holder_pid != 0 and started_ticks(self.holder_pid) != self.holder_started

    def host_name(self, rank: int, world_size: int) -> str:
        return f"host-{host_of(rank, world_size, self.network.hosts)}"

    def enter(self, rank: int, world_size: int) -> None:
        """Move this process into its host. *Called on* a rank, before it opens a socket or starts a thread.

        Raises:
            LaunchError: the hosts are gone.
        """
        if self.holder_pid:
            self.enter_host(host_of(rank, world_size, self.network.hosts))

    def enter_host(self, host: int) -> None:
        """Move this process, which has one thread, into a host."""
        libc = ctypes.CDLL(None, use_errno=True)
        user = [(_CLONE_NEWUSER, f"/proc/{self.holder_pid}/ns/user")] if self.network.way == "user" else []
        for kind, path in [*user, (CLONE_NEWNET, f"/proc/{self.holder_pid}/fd/{self.fds[host]}")]:
            try:
                fd = os.open(path, os.O_RDONLY)
                try:
                    if libc.setns(fd, kind):
                        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
                finally:
                    os.close(fd)
            except OSError as error:
                raise LaunchError(
                    f"host-{host} cannot be joined ({error}); the process that holds it may be gone"
                ) from error

    def environment(self, rank: int, world_size: int) -> dict[str, str]:
        """Variables by which gloo and NCCL keep to the host's own interface."""
        if not self.holder_pid:
            return {}
        # NCCL takes ranks of one machine for neighbours, and would go round the link
        direct = {"NCCL_P2P_DISABLE": "1", "NCCL_SHM_DISABLE": "1", "NCCL_IB_DISABLE": "1"}
        name = self.host_name(rank, world_size)
        return {"GLOO_SOCKET_IFNAME": INTERFACE, "NCCL_SOCKET_IFNAME": INTERFACE, "NCCL_HOSTID": name, **direct}


class Hosts:
    """Hosts that are up.

    Attributes:
        seats: what the ranks of a launch need to take their places.
        store_achieved_bits_per_s: what a plain TCP stream from the store's host got; 0 where there is none.
    """

    def __init__(self, seats: Seats, store_achieved_bits_per_s: float = 0.0) -> None:
        self.seats, self.store_achieved_bits_per_s = seats, store_achieved_bits_per_s

    @property
    def network(self) -> Network:
        return self.seats.network

    def address(self, host: int) -> str:
        """The address of a host, by which the others reach it; a store's host comes after those of the ranks."""
        return address(self._real(host))

    def command(self, host: int, argv: Sequence[str]) -> list[str]:
        """The command that runs another one in a host, such as a launcher's agent or a server of data.

        Raises:
            UsageError: the hosts are emulated: there is no network stack to run it in.
        """
        fd = self.seats.fds[self._real(host)]
        holder = f"/proc/{self.seats.holder_pid}"
        user = [f"--user={holder}/ns/user", "--preserve-credentials"] if self.network.way == "user" else []
        return ["nsenter", *user, f"--net={holder}/fd/{fd}", "--", *argv]

    def _real(self, host: int) -> int:
        if not self.seats.holder_pid:
            raise UsageError(f"the hosts are emulated ({self.network.reason}): none has an address or runs a command")
        if not 0 <= host < len(self.seats.fds):
            raise UsageError(f"hosts count from 0 to {len(self.seats.fds) - 1}; given {host}")
        return host


@contextlib.contextmanager
def hosts(links: Links) -> Iterator[Hosts]:
    """Bring hosts up, and take them down at the end. *Called on* the parent.

    Nothing is left, whatever happens to this process: the stacks have no names, and the process that holds them ends
    when this one does.

    Raises:
        UsageError: a latency where the kernel cannot delay packets.
    """
    if links.emulate:
        yield Hosts(Seats(_emulated(links, "asked for")))
        return
    refusals = []
    for way in ("root", "user") if os.geteuid() == 0 else ("user",):
        try:
            holder, up = _hold(links, way)
        except _Refused as refused:
            if "netem" in str(refused):
                raise UsageError(
                    f"latency {links.latency_s * 1e3:g} ms cannot be had: this kernel lacks netem, which delays packets; "
                    "leave the latency out, or emulate the link (--emulate-link)"
                ) from refused
            refusals.append(str(refused))
            continue
        try:
            yield up
        finally:
            _release(holder)
        return
    yield Hosts(Seats(_emulated(links, "; ".join(dict.fromkeys(refusals)))))


class _Refused(Exception):
    """Network stacks cannot be made this way."""


def _emulated(links: Links, reason: str) -> Network:
    return Network(
        hosts=links.hosts,
        way="emulated",
        rate_bits_per_s=links.rate_bits_per_s,
        latency_s=links.latency_s,
        reason=reason,
    )


def _hold(links: Links, way: Way) -> tuple[subprocess.Popen, Hosts]:
    """Start the process that holds the stacks, and hear from it that they are up."""
    path = os.environ.get("PATH", "") + os.pathsep + _SYSTEM_TOOLS  # a user's has no sbin
    missing = [tool for tool in ("unshare", "ip", "tc") if shutil.which(tool, path=path) is None]
    if missing:
        raise _Refused(f"{' and '.join(missing)} not found: util-linux and iproute2 make network stacks, on Linux")
    asked = {
        "hosts": links.hosts,
        "rate_bits_per_s": links.rate_bits_per_s,
        "latency_s": links.latency_s,
        "store_bits_per_s": links.store_bits_per_s,
    }
    space = ["--net"] if way == "root" else ["--user", "--map-root-user", "--net"]
    # no site packages: it starts in milliseconds
    python = [sys.executable, "-I", "-S", str(_HOLDER), json.dumps(asked)]
    holder = subprocess.Popen(
        ["unshare", *space, "--", *python],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={**os.environ, "PATH": path},
        start_new_session=True,  # a terminal's Ctrl-C is the owner's to act upon
    )
    try:
        answer = first_line(holder)
        if "error" in answer:
            raise _Refused(f"{answer['error']} ({'as root' if way == 'root' else 'as an ordinary user'})")
    except BaseException:
        _release(holder)
        raise
    network = Network(
        hosts=links.hosts,
        way=way,
        rate_bits_per_s=links.rate_bits_per_s,
        achieved_bits_per_s=answer["achieved_bits_per_s"],
        latency_s=links.latency_s,
    )
    seats = Seats(network, answer["pid"], started_ticks(answer["pid"]), tuple(answer["fds"]))
    return holder, Hosts(seats, answer["store_achieved_bits_per_s"])


def first_line(holder: subprocess.Popen) -> dict:
    """What a process that serves says when it is up; an error that it could not say itself is in its place."""
    assert holder.stdout is not None and holder.stderr is not None
    patience = time.monotonic() + _PATIENCE_S
    text = b""
    while not text.endswith(b"\n"):
        ready, _, _ = select.select([holder.stdout], [], [], max(0.0, patience - time.monotonic()))
        if not ready:
            return {"error": f"no answer within {_PATIENCE_S:g} s"}
        part = os.read(holder.stdout.fileno(), 4096)
        if not part:
            holder.wait()
            said = holder.stderr.read().decode(errors="replace").strip().splitlines()
            return {"error": said[-1] if said else f"it ended with {holder.returncode}"}
        text += part
    return json.loads(text)


def _release(holder: subprocess.Popen) -> None:
    """End the holder; the stacks go with it as soon as no rank is in them."""
    for pipe in (holder.stdin, holder.stdout, holder.stderr):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()
    try:
        holder.wait(timeout=1.0)
    except subprocess.TimeoutExpired:
        holder.kill()
        holder.wait()


def bytes_on(interface: str) -> tuple[int, int] | None:
    """(received, sent) bytes of an interface of this process's network stack so far, headers included; None without it."""
    try:
        lines = Path("/proc/self/net/dev").read_text().splitlines()[2:]
    except OSError:
        return None
    for line in lines:
        name, _, counters = line.partition(":")
        if name.strip() == interface:
            fields = counters.split()
            return int(fields[0]), int(fields[8])
    return None
