"""Hold the network stacks of several hosts: a script of its own, run in a new network namespace.

It needs nothing but the standard library and starts in milliseconds. The namespaces have no names: they live as long as
this process holds them (and as long as a rank is in one), so whatever ends it takes them along. It ends when its standard
input closes, which the kernel does when its owner dies, however that came about.

    python holder.py '{"hosts": 2, "rate_bits_per_s": 4e8, "latency_s": 0, "store_bits_per_s": 0}'

It answers with one line of JSON: {"pid", "fds": one a host, "achieved_bits_per_s"} or {"error"}. A process joins a host by
setns on /proc/PID/ns/user, where this one has a user namespace of its own, and then on /proc/PID/fd/FD. Where a rate of
a store's link is given there is one host more, the last, with a link of that rate, and "store_achieved_bits_per_s".
"""

import contextlib
import ctypes
import json
import os
import select
import signal
import socket
import subprocess
import sys
import time

CLONE_NEWNET = 0x40000000
PR_SET_DUMPABLE = 4
INTERFACE = "eth0"
QUEUE_MS = 200
BURST_S = 0.002
MIN_BURST_BYTES = 16 << 10
MEASURE_S = 0.06
MEASURE_BYTES = 24 << 10
GIVE_UP_S = 3.0
CHUNK = 1 << 18

libc = ctypes.CDLL(None, use_errno=True)


def main():
    asked = json.loads(sys.argv[1])
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # an interrupt is the owner's to act upon
    libc.prctl(PR_SET_DUMPABLE, 1, 0, 0, 0)  # or the owner, an ordinary user, may not look at /proc/PID/fd
    try:
        hosts, rate, store = asked["hosts"], asked["rate_bits_per_s"], asked.get("store_bits_per_s", 0)
        fds = build([int(rate)] * hosts + [int(store)] * bool(store), asked["latency_s"])
        answer = {"pid": os.getpid(), "fds": fds, "achieved_bits_per_s": 0.0, "store_achieved_bits_per_s": 0.0}
        if hosts > 1:
            answer["achieved_bits_per_s"] = measure(fds, 0, 1, rate / 8)
        if store:
            answer["store_achieved_bits_per_s"] = measure(fds, hosts, 0, store / 8)
    except (OSError, RuntimeError) as error:
        print(json.dumps({"error": str(error)}), flush=True)
        return 1
    print(json.dumps(answer), flush=True)
    wait_for_the_end()
    return 0


def wait_for_the_end():
    """Wait until the owner closes its end or dies: what it forked may keep that end open."""
    waits = [0]
    with contextlib.suppress(AttributeError, OSError):  # a kernel before 5.3
        waits.append(os.pidfd_open(os.getppid()))
    while True:
        ready = select.select(waits, [], [])[0]
        if ready[-1] != 0 or not os.read(0, 4096):
            return


def address(host):
    return f"10.77.{host // 200}.{host % 200 + 1}"


def build(rates, latency_s):
    """Make the stacks: a bridge in this namespace, and one namespace for each rate, joined to it by a pair shaped to it."""
    switch = os.open("/proc/self/ns/net", os.O_RDONLY)
    fds = []
    for _ in rates:
        if libc.unshare(CLONE_NEWNET):
            raise OSError(f"unshare: {os.strerror(ctypes.get_errno())}")
        fds.append(os.open("/proc/self/ns/net", os.O_RDONLY))
    enter(switch)
    lines = ["link set lo up", "link add switch type bridge", "link set switch up"]
    for host, fd in enumerate(fds):
        lines.append(f"link add port{host} type veth peer name {INTERFACE} netns /proc/{os.getpid()}/fd/{fd}")
        lines.append(f"link set port{host} master switch up")
    tool("ip", lines)
    tool("tc", [line for host, rate in enumerate(rates) for line in shaping(f"port{host}", rate, 0)])
    for host, (fd, rate) in enumerate(zip(fds, rates, strict=True)):
        enter(fd)
        tool("ip", [f"addr add {address(host)}/16 dev {INTERFACE}", f"link set {INTERFACE} up", "link set lo up"])
        tool("tc", shaping(INTERFACE, rate, latency_s))
    enter(switch)
    return fds


def shaping(interface, rate, latency_s):
    """The lines that limit what leaves by an interface. Of a pair, one end is a host's way out, the other its way in."""
    burst = burst_bytes(rate)
    limit = f"tbf rate {rate}bit burst {burst}b latency {QUEUE_MS}ms"
    delay = f"netem delay {latency_s * 1e6:.0f}us limit 100000"
    if rate and latency_s:
        return [
            f"qdisc add dev {interface} root handle 1: {delay}",
            f"qdisc add dev {interface} parent 1: handle 2: {limit}",
        ]
    if rate or latency_s:
        return [f"qdisc add dev {interface} root {limit if rate else delay}"]
    return []


def burst_bytes(rate):
    """What may leave at once: tbf refills at ticks of the kernel's clock, so a fast link needs a larger burst."""
    return max(MIN_BURST_BYTES, int(rate / 8 * BURST_S))


def enter(fd):
    if libc.setns(fd, CLONE_NEWNET):
        raise OSError(f"setns: {os.strerror(ctypes.get_errno())}")


def tool(name, lines):
    if not lines:
        return
    done = subprocess.run([name, "-batch", "-"], input="\n".join(lines) + "\n", capture_output=True, text=True)
    if done.returncode:
        said = " ".join(line for line in done.stderr.split("\n") if line and not line.startswith("Command failed"))
        raise RuntimeError(f"{name}: {said or done.returncode}")


def measure(fds, source, target, rate):
    """Bits per second, headers included, that a TCP stream from one host to another gets once the burst is used up.

    A socket stays in the namespace in which it was made, so one process can hold both ends.
    """
    switch = os.open("/proc/self/ns/net", os.O_RDONLY)
    enter(fds[target])
    listener = socket.create_server((address(target), 0))
    enter(fds[source])
    sender = socket.socket()
    sender.settimeout(GIVE_UP_S)
    sender.connect(listener.getsockname())
    receiver = listener.accept()[0]
    enter(switch)
    os.close(switch)
    mtu = 1500
    with listener, sender, receiver:
        sender.setblocking(False)
        receiver.setblocking(False)
        load, space = memoryview(bytes(CHUNK)), bytearray(CHUNK)
        skip = burst_bytes(rate * 8) * 2
        wanted = max(MEASURE_BYTES, rate * MEASURE_S)
        got, first, began = 0, None, time.monotonic()
        while True:
            readable, writable, _ = select.select([receiver], [sender], [], GIVE_UP_S)
            if not readable and not writable:
                raise RuntimeError("nothing came through the link within 3 s")
            if writable:
                sender.send(load)
            if not readable:
                continue
            got += receiver.recv_into(space)
            now = time.monotonic()
            if first is None:
                if got >= skip:
                    first, base = now, got
            elif got - base >= wanted and now - first >= min(MEASURE_S, 0.02):
                break
            if now - began > GIVE_UP_S and first is not None and now > first:
                break
    # 54 bytes of Ethernet, IP and TCP headers and 12 of TCP's timestamps go with each packet
    return (got - base) * 8 / (now - first) * (mtu + 14) / (mtu - 52)


if __name__ == "__main__":
    sys.exit(main())
