"""The fix as a difference of two sources, in letters that can be read."""

from __future__ import annotations

import ast
import difflib
import re
from html import escape

from docutils import nodes
from docutils.parsers.rst import directives

from labkit.errors import UsageError

from .base import DeckDirective, raw
from .fitting import HEIGHT_PX, MARGIN_PX, SLIDE_PX

CODE_PX = 22
"""Of a line of source, where the longest one lets it."""

LEAST_CODE_PX = 15
LETTER = 0.602
"""Width of a letter of the code's font, as a share of its height."""


class LabDiff(DeckDirective):
    """The difference in source between two variants: lines that go are marked with -, lines that come with +.

    Letters are as large as the longest line and the slide's height let them be.
    """

    option_spec = {"context": directives.nonnegative_int, "of": directives.unchanged_required}

    def draw(self) -> list[nodes.Node]:
        names = self.argument().split()
        if len(names) != 2:
            raise UsageError(f"lab-diff wants two variants, as in `broken fixed`; given {self.argument()!r}")
        diff = self.records.lab.diff(*names)
        before, after = diff.before, diff.after
        if "of" in self.options:
            before, after = _methods_of(before, after, self.options["of"].replace(",", " ").split())
        context = self.options.get("context", 3)
        lines = difflib.unified_diff(before.splitlines(), after.splitlines(), lineterm="", n=context)
        classes = {"-": "goes", "+": "comes"}
        shown = [line for line in lines if not line.startswith(("---", "+++", "@@"))]
        body = "".join(
            f'<span class="{classes.get(line[0], "stays")}">{escape(line[0])} {escape(line[1:]) or " "}</span>'
            for line in shown
        )
        label = f"difference from {names[0]} to {names[1]}"
        return [raw(f'<pre class="diff" style="font-size:{_code_px(shown):.1f}px" aria-label="{label}">{body}</pre>')]


def _code_px(lines: list[str]) -> float:
    """Height of the letters at which all lines fit.

    Raises:
        UsageError: nobody could read them.
    """
    longest = 1 + max((len(line) for line in lines), default=0)
    width = (SLIDE_PX[0] - 2 * MARGIN_PX - 40) / (LETTER * longest)
    size = min(CODE_PX, width, HEIGHT_PX / (1.3 * max(1, len(lines))))
    if size < LEAST_CODE_PX:
        raise UsageError(f"{len(lines)} lines of up to {longest} letters are too small to read; choose methods with :of:")
    return size


def _methods_of(before: str, after: str, names: list[str]) -> tuple[str, str]:
    """Two classes cut down to their first line and some methods, without the comments beside their lines.

    Raises:
        UsageError: neither is a class that has them.
    """
    found: set[str] = set()
    cut = []
    for source in (before, after):
        [node] = ast.parse(source).body
        methods = {each.name: each for each in getattr(node, "body", ()) if isinstance(each, ast.FunctionDef)}
        chosen = [methods[name] for name in methods if name in names]
        found |= {method.name for method in chosen}
        lines = [re.sub(r"  # .*$", "", line) for line in source.splitlines()]
        parts = [lines[method.lineno - 1 : method.end_lineno] for method in chosen]
        cut.append("\n".join(line for part in ([lines[0]], *parts) for line in [*part, ""]).strip())
    missing = [name for name in names if name not in found]
    if missing:
        raise UsageError(f"no method {missing[0]!r} in either of the two; :of: names methods of a class")
    return cut[0], cut[1]
