"""Formulas as MathML, which browsers draw themselves: no script, no font, no network."""

from __future__ import annotations

from docutils import nodes
from latex2mathml.converter import convert
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.util.logging import get_node_location


def mathml(node: nodes.Element, display: str) -> str:
    """A node's formula in LaTeX as MathML.

    Args:
        display: "inline" or "block".

    Raises:
        ExtensionError: with the place and the formula.
    """
    latex = node.astext()
    try:
        return convert(latex, display=display)
    except Exception as error:  # the converter raises many kinds
        place = get_node_location(node)
        raise ExtensionError(f"{place}: cannot read the formula {latex}: {type(error).__name__} {error}") from None


def _inline(self, node: nodes.math) -> None:
    self.body.append(mathml(node, "inline"))
    raise nodes.SkipNode


def _block(self, node: nodes.math_block) -> None:
    self.body.append(f'<div class="math">{mathml(node, "block")}</div>')
    raise nodes.SkipNode


def setup(app: Sphinx) -> None:
    for builder in ("html", "revealjs"):
        app.registry.translation_handlers.setdefault(builder, {}).update(
            {"math": (_inline, None), "math_block": (_block, None)}
        )
