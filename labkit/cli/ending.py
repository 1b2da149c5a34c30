"""How a command ends: its exit code, and what is said on standard error."""

from __future__ import annotations

import signal
import sys
from typing import Any

import typer

from ..errors import LabkitError, RecordError, UsageError, shown
from ..interrupts import ended_in_order
from .exit_codes import EXIT_INTERRUPTED, EXIT_PROGRAM_FAILED, EXIT_WRONG_USE
from .output import printed_out, replace_what_cannot_be_printed

# typer carries click inside or beside it, by its version; this is the class that either raises for wrong use
_WRONG_USE: Any = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")

_WANTED = {"INTEGER": "a whole number", "FLOAT": "a number"}
"""What an option takes, by what its help calls it."""


def main() -> None:
    """Run the command line. Errors are one sentence on standard error."""
    replace_what_cannot_be_printed()
    with ended_in_order() as came:
        code = _outcome()
        if code == EXIT_INTERRUPTED:  # typer may have turned the interrupt into this code itself
            by = came[0] if came else signal.SIGINT
            said = "interrupted" if by == signal.SIGINT else "ended from outside"
            print(f"labkit: {said}; its ranks are ended", file=sys.stderr)
            code = 128 + by
        sys.exit(printed_out(code))


def _outcome() -> int:
    from .app import app

    try:
        code = app(standalone_mode=False, prog_name="labkit")
    except _WRONG_USE as error:
        _say_wrong_use(error, sys.argv[1:])
        code = EXIT_WRONG_USE
    except typer.Exit as end:
        code = end.exit_code
    except (UsageError, RecordError) as error:
        print(f"labkit: {error}", file=sys.stderr)
        code = EXIT_WRONG_USE
    except LabkitError as error:
        print(f"labkit: {error}", file=sys.stderr)
        if getattr(error, "folder", ""):
            print(f"output and stacks of each rank: {error.folder}", file=sys.stderr)  # type: ignore[attr-defined]
        code = EXIT_PROGRAM_FAILED
    except (KeyboardInterrupt, typer.Abort):
        code = EXIT_INTERRUPTED
    except BrokenPipeError:  # nobody reads on, as under `labkit list | head -1`
        code = 0
    except SystemExit as end:  # by rich, which takes a pipe that nobody reads for an error
        code = 0 if isinstance(end.__context__, BrokenPipeError) else int(end.code or 0)
    except OSError as error:  # a disk that is full or forbidden, mostly
        where = f" at {error.filename}" if error.filename else ""
        print(
            f"labkit: {error.strerror or error}{where}; make room or give rights there, or choose another place with "
            "--record, LABKIT_CACHE or TMPDIR",
            file=sys.stderr,
        )
        code = EXIT_PROGRAM_FAILED
    return code or 0


def _say_wrong_use(error: Any, words: list[str]) -> None:
    """Say what typer refused; of a value of the wrong type what is wanted, what was given and what says more."""
    param = getattr(error, "param", None)
    wanted = _WANTED.get(getattr(param, "metavar", None) or "")
    names = [name for name in getattr(param, "opts", ()) if name.startswith("--")]
    given = _given(names, words)
    if not wanted or given is None:
        error.show()
        return
    command = f" {error.ctx.info_name}" if error.ctx is not None else ""
    print(f"labkit: {names[0]} must be {wanted}; given {shown(given)}; labkit{command} --help says more", file=sys.stderr)


def _given(names: list[str], words: list[str]) -> str | None:
    """What was given for an option, the last time; None where it was not."""
    for at in reversed(range(len(words))):
        name, equals, value = words[at].partition("=")
        if name in names and (equals or at + 1 < len(words)):
            return value if equals else words[at + 1]
    return None
