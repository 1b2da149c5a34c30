"""Processes of a script's own that train and join no process group: hogwild, or runs of their own side by side.

They are no ranks: nothing says which of them is to hold the same as which. So they are not watched, but counted and said.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

FOLDER = "LABKIT_DOCTOR_CHILDREN"
"""The variable of the environment that says where to leave a mark."""


def arm_optimizers(module: Any) -> None:
    """Have the first step of an optimizer leave a mark, where nothing watches this process by then.

    *Called* in each process that a watched script starts, as torch is being loaded there, or as it is forked off.

    Args:
        module: torch's that defines the optimizer's hooks.
    """
    done: list[bool] = []

    def stepped(optimizer: Any, args: Any, kwargs: Any) -> None:
        if not done:
            done.append(True)  # a hook cannot take itself away while hooks are called
            _leave_a_mark()

    module.register_optimizer_step_post_hook(stepped)


def _leave_a_mark() -> None:
    children = sys.modules.get("labkit.doctor.children")
    folder = os.environ.get(FOLDER, "")
    if folder and (children is None or not children.is_watched()):
        try:
            (Path(folder) / f"alone-{os.getpid()}").touch()
        except OSError:  # the folder is gone: the doctor has ended
            return


def take_back(folder: Path) -> None:
    """This process has joined a process group after all: it is a rank."""
    (folder / f"alone-{os.getpid()}").unlink(missing_ok=True)


def count(folder: Path) -> int:
    """How many processes trained so. *Called on* the parent, once all have ended."""
    return len(list(folder.glob("alone-*")))
