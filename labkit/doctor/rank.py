"""One rank of a script under the doctor: watch, run the script as Python would, and leave its end as it was.

`python -m labkit.doctor.rank FOLDER -- SCRIPT ARGS…` with RANK, WORLD_SIZE and the rest in the environment, as torchrun
sets them. Standard output, exceptions and the exit code are the script's own.
"""

from __future__ import annotations

import contextlib
import ctypes
import faulthandler
import importlib.util
import os
import runpy
import signal
import sys
import threading
from pathlib import Path
from types import TracebackType

from ..record.probe import Probe
from ..watch.outside.attach import Attached
from ..watch.outside.patches import is_own
from ..watch.outside.steps import EnoughSteps
from .children import watch_children, watch_no_more

PATIENCE_S = 10.0
"""How long a process may take to end once its script has: torn down process groups hang now and then."""

END_FILE, STACK_FILE, LEAVING_FILE = "end-{rank:05d}.txt", "stack-{rank:05d}.txt", "leaving-{rank:05d}.txt"


def main(arguments: list[str]) -> int:
    """Run the script. Returns its exit code; what it raises is raised through, and shown by the script's own frames."""
    folder, steps, module, command = _parsed(arguments)
    _end_with_the_doctor()
    try:
        return watched(folder, command, steps=steps, module=module)
    except BaseException:
        hide_own_frames()
        raise
    finally:
        _end_in_time(_code_of(folder))


def hide_own_frames() -> None:
    """Have the script's error shown by the hook that is set, as without the doctor."""
    shown = sys.excepthook

    def hook(kind: type[BaseException], error: BaseException, _: TracebackType | None) -> None:
        without_own_frames(error)
        shown(kind, error, error.__traceback__)

    sys.excepthook = hook


def show(error: BaseException) -> None:
    """Print the script's error as Python does, and go on."""
    without_own_frames(error)
    sys.excepthook(type(error), error, error.__traceback__)


def without_own_frames(error: BaseException | None, seen: frozenset[int] = frozenset()) -> None:
    """Take the frames that lead to the script, and labkit's, out of a traceback and out of those of the errors behind it."""
    if error is None or id(error) in seen:
        return
    frames: list[TracebackType] = []
    frame = error.__traceback__
    while frame is not None:
        code = frame.tb_frame.f_code
        if code is _run.__code__:
            frames.clear()
        elif not is_own(code.co_filename) and (frames or code.co_filename != "<frozen runpy>"):
            frames.append(frame)
        frame = frame.tb_next
    for one, then in zip(frames, [*frames[1:], None], strict=False):
        one.tb_next = then
    error.__traceback__ = frames[0] if frames else None
    for behind in (error.__cause__, error.__context__, *getattr(error, "exceptions", ())):
        without_own_frames(behind, seen | {id(error)})


def watched(folder: Path, command: list[str], *, steps: int | None, module: bool) -> int:
    """Run the script in this process, and write what it does into a folder.

    Returns:
        Its exit code.

    Raises:
        BaseException: whatever the script raises.
    """
    folder = folder.resolve()  # wherever the script goes
    rank = int(os.environ.get("RANK", "0"))
    stacks = (folder / STACK_FILE.format(rank=rank)).open("w")
    faulthandler.register(signal.SIGUSR1, file=stacks, all_threads=True)
    probe = Probe(folder / f"rank-{rank:05d}.jsonl", device="cpu", backend="none")
    attached = Attached(probe, steps, (folder / LEAVING_FILE.format(rank=rank)).touch)
    watch_children(folder, steps, attached)
    end, code = "finished", 0
    try:
        _run(command, module)
    except EnoughSteps:
        end = "enough"
    except SystemExit as left:
        end, code = ("finished", 0) if left.code in (0, None) else ("exited", _as_code(left.code))
    except BaseException as error:
        end, code = f"raised {type(error).__name__}", 1
        with contextlib.suppress(Exception):
            attached.raised(error)
        raise
    finally:
        watch_no_more()
        with contextlib.suppress(Exception):
            attached.close(finished=end in ("finished", "enough"))
        with contextlib.suppress(OSError):  # the disk is full, or the folder gone: not the script's fault
            note_end(folder, rank, end, code)
    return code


def note_end(folder: Path, rank: int, end: str, code: int) -> None:
    """Say how a rank's script ended."""
    aside = folder / f"{END_FILE.format(rank=rank)}.part"
    aside.write_text(f"{end}\n{code}")
    aside.replace(folder / END_FILE.format(rank=rank))


def end_of(folder: Path, rank: int) -> tuple[str, int] | None:
    """(how, exit code) of a rank whose script has ended; None while it has not."""
    try:
        end, code = (folder / END_FILE.format(rank=rank)).read_text().split("\n")
        return end, int(code)
    except (OSError, ValueError):
        return None


def _code_of(folder: Path) -> int:
    ended = end_of(folder, int(os.environ.get("RANK", "0")))
    return ended[1] if ended is not None else 1


def _parsed(arguments: list[str]) -> tuple[Path, int | None, bool, list[str]]:
    options, command = arguments[: arguments.index("--")], arguments[arguments.index("--") + 1 :]
    folder = Path(options[0])
    steps = int(options[options.index("--steps") + 1]) if "--steps" in options else None
    return folder, steps, "--module" in options, command


def _run(command: list[str], module: bool) -> None:
    """The script as `python SCRIPT ARGS…` runs it, or the module as `python -m MODULE ARGS…` does."""
    target, *rest = command
    if module:
        sys.argv = [target, *rest]
        sys.path.insert(0, os.getcwd())
        runpy.run_module(target, run_name="__main__", alter_sys=True)
        return
    path = os.path.abspath(target)
    sys.argv = [target, *rest]
    sys.path.insert(0, os.path.dirname(path))
    spec = importlib.util.spec_from_file_location("__main__", path)
    if spec is None or spec.loader is None:
        raise SystemExit(f"{target} is no Python script")
    runpy.run_path(path, run_name="__main__")


def _as_code(code: object) -> int:
    if isinstance(code, int):
        return code & 0xFF  # as the system has it
    print(code, file=sys.stderr)
    return 1


def _end_with_the_doctor() -> None:
    """Have the system end this process where the doctor's is killed, which then can end nobody."""
    if sys.platform == "linux":
        pr_set_pdeathsig = 1
        with contextlib.suppress(OSError, AttributeError):
            ctypes.CDLL(None).prctl(pr_set_pdeathsig, signal.SIGKILL)


def _end_in_time(code: int) -> None:
    """End the process in time even where tearing down its process group hangs: the script is over, and is not to blame."""

    def end() -> None:
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(code)

    timer = threading.Timer(PATIENCE_S, end)
    timer.daemon = True
    timer.start()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
