"""Formulas as MathML, which browsers draw themselves: no script, no font, no network."""

from __future__ import annotations

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError


def mathml(latex: str, display: str) -> str:
    """A formula in LaTeX as MathML.

    Args:
        display: "inline" or "block".

    Raises:
        ExtensionError: with the formula.
    """
    try:
        return convert(latex, display=display)
    except Exception as error:  # the converter raises many kinds
        raise ExtensionError(f"cannot read the formula {latex!r}: {type(error).__name__} {error}") from None


def _inline(self, node: nodes.math) -> None:
    self.body.append(mathml(node.astext(), "inline"))
    raise nodes.SkipNode


def _block(self, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math">{mathml(node.astext(), "block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    for builder in ("html", "revealjs"):
        app.registry.translation_handlers.setdefault(builder, {}).update(
            {"math": (_inline, None), "math_block": (_block, None)}
        )
