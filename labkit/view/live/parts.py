"""The script and the style of the moving picture: plain files beside this one, put together as they are loaded."""

from __future__ import annotations

import functools
from importlib import resources

SCRIPTS = ("style", "numbers", "model", "lanes", "curve", "view")
"""In this order they are one ES module. Each is one concept; the last one exports what a notebook's page calls."""


@functools.cache
def part(name: str) -> str:
    """One file of the folder `js`."""
    return resources.files(__name__.rpartition(".")[0]).joinpath("js", name).read_text(encoding="utf-8")


def module() -> str:
    """The ES module that draws."""
    return "\n".join(part(f"{name}.js") for name in SCRIPTS)


def style() -> str:
    """Its style sheet: colours come from JupyterLab's theme, with others where there is none."""
    return part("live.css")
