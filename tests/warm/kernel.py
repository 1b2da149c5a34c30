"""What Jupyter starts in place of a kernel: ask the nursery for one, stand for it, and end as it ends.

Run with -I -S: it needs the standard library alone, and starts in 20 ms.
"""

import array
import json
import os
import signal
import socket
import sys


def main() -> int:
    path, *arguments = sys.argv[1:]
    nursery = socket.socket(socket.AF_UNIX)
    nursery.connect(path)
    request = json.dumps({"kernel": arguments, "cwd": os.getcwd(), "env": dict(os.environ)}).encode() + b"\n"
    beside = [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [0, 1, 2]))]
    sent = nursery.sendmsg([request], beside)
    nursery.sendall(request[sent:])
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGUSR1, signal.SIGUSR2):
        signal.signal(number, lambda number, _: nursery.send(bytes([number])))
    said = b""
    while not said.endswith(b"\n"):
        part = nursery.recv(64)
        if not part:
            return 1
        said += part
    code = int(said)
    if code < 0:
        signal.signal(-code, signal.SIG_DFL)
        os.kill(os.getpid(), -code)
    return code


if __name__ == "__main__":
    sys.exit(main())
