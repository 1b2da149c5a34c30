"""Whether somebody looks at a notebook's page while the code runs, or a program executes the notebook."""

from __future__ import annotations

import sys
import threading


def somebody_looks() -> bool:
    """Whether this thread runs a cell that JupyterLab, Notebook or VS Code sent.

    They say which cell it is; nbconvert, papermill and pytest do not, and have no page on which anything could move.
    """
    if threading.current_thread() is not threading.main_thread():
        return False
    shell = sys.modules.get("IPython") and sys.modules["IPython"].get_ipython()
    kernel = getattr(shell, "kernel", None)
    if kernel is None:
        return False
    try:
        parent = kernel.get_parent("shell")
    except (AttributeError, LookupError, TypeError):
        return False
    return isinstance(parent, dict) and bool(parent.get("metadata", {}).get("cellId"))
