"""Figures in a dark theme: turned over in the page, so that the stored picture stays one that any page can show.

A picture is stored with dark ink on white, which can be read everywhere: on paper, in a page without a kernel, in a viewer
that knows no theme. Where a page says that it is dark, a filter makes the white the page's ground and the ink light; each
colour keeps its hue.
"""

from __future__ import annotations

FIGURE = "labkit-figure"
"""Class of the figures that labkit itself puts into a page."""

MARK = {"needs_background": "light"}
"""Metadata by which JupyterLab gives the figures in a cell's output a class of their own, and a light ground if need be."""

TURNED = "filter:invert(.93) hue-rotate(180deg)"
"""White becomes #121212, next to the ground of outputs in JupyterLab's dark theme."""

_DARK = '[data-jp-theme-light="false"]'
RULE = (
    f"{_DARK} .jp-RenderedImage img.jp-needs-light-background,{_DARK} img.{FIGURE},body.vscode-dark img.{FIGURE}"
    f"{{{TURNED};background:none!important}}"
)
PAGE_RULE = f"@media (prefers-color-scheme:dark){{.lkd figure img{{{TURNED}}}}}"
"""The like for a page of its own."""


def style() -> str:
    """The rule as an element of a page."""
    return f"<style>{RULE}</style>"
