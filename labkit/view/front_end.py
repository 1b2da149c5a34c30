"""Whether somebody sits before the notebook: what is asked of a person is asked only then."""

from __future__ import annotations

from typing import Any


def is_live() -> bool:
    """Whether the cell that runs now was started in a front end in which a person can answer.

    JupyterLab, Notebook and VS Code say with each cell that they take input. papermill, nbconvert and nbval say that they
    take none: nobody is there, so what they store holds no widget and no question to answer.
    """
    try:
        from IPython.core.getipython import get_ipython
    except ImportError:
        return False
    kernel: Any = getattr(get_ipython(), "kernel", None)
    if kernel is None:
        return False
    parent = kernel.get_parent("shell") or {}
    return bool(parent.get("content", {}).get("allow_stdin", False))


def show_widget(widget: Any, text: str) -> None:
    """Display a widget; the text stands in its place where it cannot be drawn, so that no part of it is told there."""
    from IPython.display import display

    bundle: Any = widget._repr_mimebundle_()
    data = dict(bundle[0] if isinstance(bundle, tuple) else bundle)
    display({**data, "text/plain": text}, raw=True)
