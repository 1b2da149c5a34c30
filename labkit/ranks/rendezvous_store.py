"""A trap of production, shown for real: after a crash, ranks that meet through the agent's store read dead addresses.

torch's elastic agent lends the ranks the store by which the agents met (`env://` finds it). The store outlives a crash,
and with it the addresses of the ranks that died. A rank of the next attempt that comes before its peer has written its own
address reads the dead one's, and cannot connect. Two remedies: a store of its own for each attempt (labkit does that), or
TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1, with which rank 0 starts a new one in each attempt (pytorch issue 135712).
"""

from __future__ import annotations

import contextlib
import faulthandler
import json
import os
import signal
import tempfile
import threading
import time
import uuid
from dataclasses import dataclass
from datetime import timedelta
from pathlib import Path

from . import forkserver
from .agent import silence_elastic

LATE_S = 0.4
"""How much later rank 1 comes in the second attempt. Without it who comes first is chance, and so is the outcome."""

PATIENCE_S = 2.0
"""After which a rank gives up, and, if gloo does not let it, is ended."""

_SHARE = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"


@dataclass(frozen=True)
class Meeting:
    """What became of two ranks that were started again.

    Attributes:
        met: whether they met in the second attempt.
        seconds: of the whole launch.
        said: what the rank that came first met, if they did not meet.
    """

    met: bool
    seconds: float
    said: str

    def __repr__(self) -> str:
        outcome = "met" if self.met else "did not meet"
        return f"{outcome} after {self.seconds:.1f} s" + (f": {self.said}" if self.said else "")


def meet_after_a_crash(*, share_store: bool) -> Meeting:
    """Start two ranks by torch's own agent, kill one, let the agent start both again, and see whether they meet.

    *Called on* the parent. Takes a second, or PATIENCE_S more. With the shared store the outcome is chance: rank 0 reads a
    dead address, and whether it is the one that has to connect to it depends on port numbers. So it meets, fails or hangs.

    Args:
        share_store: leave torch's default; False sets TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1 for this launch.
    """
    from torch.distributed.elastic.multiprocessing import DefaultLogsSpecs
    from torch.distributed.elastic.multiprocessing.errors import ChildFailedError
    from torch.distributed.launcher.api import LaunchConfig, elastic_launch

    silence_elastic()
    before = {name: os.environ.get(name) for name in (_SHARE, "TORCHELASTIC_SIGNALS_TO_HANDLE")}
    os.environ[_SHARE] = "0" if share_store else "1"
    started = time.monotonic()
    try:
        with tempfile.TemporaryDirectory(prefix="labkit-") as folder:
            config = LaunchConfig(
                min_nodes=1,
                max_nodes=1,
                nproc_per_node=2,
                run_id=uuid.uuid4().hex,
                rdzv_backend="c10d",
                rdzv_endpoint="127.0.0.1:0",
                max_restarts=1,
                monitor_interval=0.01,
                start_method="forkserver",
                local_addr="127.0.0.1",
                logs_specs=DefaultLogsSpecs(log_dir=folder),
            )

            def launch() -> None:
                with forkserver.starting_ranks(), contextlib.suppress(ChildFailedError):
                    elastic_launch(config, _meet)(folder)

            agent = threading.Thread(target=launch)  # on the main thread it would take its signals, and keep them
            agent.start()
            agent.join()
            seconds = time.monotonic() - started
            told = [json.loads(path.read_text()) for path in sorted(Path(folder).glob("met-*.json"))]
    finally:
        for name, value in before.items():
            if value is None:
                os.environ.pop(name, None)
            else:
                os.environ[name] = value
    said = next((one["error"] for one in told if one["error"]), "" if len(told) == 2 else "hung, and was ended")
    return Meeting(not said, seconds, said)


def _meet(folder: str) -> None:
    """One rank's life. *Called on* both ranks, in each attempt."""
    import torch.distributed as dist

    from .context import die_with_parent

    die_with_parent()
    faulthandler.dump_traceback_later(PATIENCE_S + LATE_S + 1, exit=True)  # whatever gloo waits for
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)  # what gloo says is kept below
    os.environ.setdefault("GLOO_SOCKET_IFNAME", "lo")
    rank, attempt = int(os.environ["RANK"]), int(os.environ["TORCHELASTIC_RESTART_COUNT"])
    if attempt and rank == 1:
        time.sleep(LATE_S)
    error = ""
    try:
        dist.init_process_group("gloo", timeout=timedelta(seconds=PATIENCE_S))  # env://
        dist.barrier()
    except Exception as met:
        error = f"{type(met).__name__}: {str(met).splitlines()[0]}"
    if attempt == 0:
        if rank == 1:
            os.kill(os.getpid(), signal.SIGKILL)
        time.sleep(60)  # until the agent ends it
    Path(folder, f"met-{rank}.json").write_text(json.dumps({"error": error}))
    if error:
        os._exit(1)
    dist.destroy_process_group()
