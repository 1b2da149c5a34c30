"""A sketch as SVG: its own ground, light or dark as the page is, and its words for a screen reader."""

from __future__ import annotations

import hashlib

from .cards import escape
from .sketch import Box, Line, Mark, Shape, Sketch, Words

LIGHT = {
    "ink": "#1b1f24", "soft": "#57606a", "line": "#c4ccd4", "ground": "#ffffff", "panel": "#eef1f4", "blue": "#0072b2",
    "orange": "#c04f00", "green": "#00795a", "purple": "#a0497a", "sky": "#56b4e9", "yellow": "#e6c229", "red": "#b3261e",
}  # fmt: skip
DARK = {
    "ink": "#e6edf3", "soft": "#a9b4bf", "line": "#4a535d", "ground": "#14181d", "panel": "#262d35", "blue": "#5cb3ea",
    "orange": "#ff9552", "green": "#3fcf9f", "purple": "#e79cc4", "sky": "#2f7fb5", "yellow": "#b8981d", "red": "#ff8a80",
}  # fmt: skip
DASHES = {"": "", "dash": "7 4", "dot": "2 3", "dashdot": "9 3 2 3"}
_HATCHES = {
    "lines": '<path d="M-2 10 10 -2M-2 2 2 -2M6 10 10 6"/>',
    "back": '<path d="M-2 -2 10 10M-2 6 2 10M6 -2 10 2"/>',
    "dots": '<circle cx="2" cy="2" r="1.1"/><circle cx="6" cy="6" r="1.1"/>',
    "cross": '<path d="M0 4H8M4 0V8"/>',
}
FONT = 'system-ui,-apple-system,"Segoe UI",Roboto,"Helvetica Neue",Arial,sans-serif'


def _variables(colours: dict[str, str]) -> str:
    return ";".join(f"--{name}:{value}" for name, value in colours.items())


STYLE = (
    f".lks{{{_variables(LIGHT)};font-family:{FONT}}}"
    f"@media (prefers-color-scheme:dark){{.lks:not(.light){{{_variables(DARK)}}}}}"
    f".lks.dark{{{_variables(DARK)}}}"
    + "".join(f".lks .f-{name}{{fill:var(--{name})}}.lks .s-{name}{{stroke:var(--{name})}}" for name in LIGHT)
    + ".lks .none{fill:none}"
)


def to_svg(sketch: Sketch) -> str:
    """The SVG of a sketch. It scales down in a narrow window; `class` light or dark on its root chooses the colours.

    Without one of these the reader's own preference does.
    """
    key = hashlib.blake2s(sketch.alt.encode(), digest_size=4).hexdigest()
    body = "".join(_shape(shape, key) for shape in sketch.shapes)
    used = [name for name in _HATCHES if f"#{name}-{key}" in body]
    patterns = "".join(
        f'<pattern id="{name}-{key}" width="8" height="8" patternUnits="userSpaceOnUse">'
        f'<g class="f-ground s-ground" stroke-width="1.4">{_HATCHES[name]}</g></pattern>'
        for name in used
    )
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="lks" role="img" viewBox="0 0 {sketch.width:g} {sketch.height:g}" '
        f'width="{sketch.width:g}" height="{sketch.height:g}" style="max-width:100%;height:auto" '
        f'aria-label="{escape(sketch.alt)}"><style>{STYLE}</style><defs>{patterns}</defs>'
        f'<rect class="f-ground" width="100%" height="100%" rx="4"/>{body}</svg>'
    )


def _shape(shape: Shape, key: str) -> str:
    if isinstance(shape, Line):
        return _line(shape)
    if isinstance(shape, Box):
        return _box(shape, key)
    return _words(shape) if isinstance(shape, Words) else _mark(shape)


def _line(line: Line) -> str:
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in line.points)
    dash = f' stroke-dasharray="{DASHES[line.dash]}"' if line.dash else ""
    drawn = f'<polyline class="none s-{line.pen}" stroke-width="{line.width:g}"{dash} points="{points}"/>'
    if line.arrow:
        corners = " ".join(f"{x:.1f},{y:.1f}" for x, y in head_of(line))
        drawn += f'<polygon class="f-{line.pen}" points="{corners}"/>'
    return drawn


def head_of(line: Line) -> list[tuple[float, float]]:
    """The corners of an arrow's head at the end of a line."""
    (x0, y0), (x1, y1) = line.points[-2:]
    length = max(1e-9, ((x1 - x0) ** 2 + (y1 - y0) ** 2) ** 0.5)
    dx, dy = (x1 - x0) / length, (y1 - y0) / length
    back, half = 8 + line.width, 3 + line.width
    return [(x1 + dx, y1 + dy), (x1 - back * dx + half * dy, y1 - back * dy - half * dx),
            (x1 - back * dx - half * dy, y1 - back * dy + half * dx)]  # fmt: skip


def _box(box: Box, key: str) -> str:
    place = f'x="{box.x:.1f}" y="{box.y:.1f}" width="{max(box.width, 0):.1f}" height="{max(box.height, 0):.1f}"'
    edge = f" s-{box.edge}" if box.edge else ""
    drawn = f'<rect class="f-{box.fill}{edge}" fill-opacity="{box.strength:g}" {place}/>'
    return drawn + (f'<rect fill="url(#{box.hatch}-{key})" {place}/>' if box.hatch else "")


def _words(words: Words) -> str:
    turn = f' transform="rotate(-90 {words.x:.1f} {words.y:.1f})"' if words.turned else ""
    weight = ' font-weight="600"' if words.bold else ""
    return (
        f'<text class="f-{words.pen}" x="{words.x:.1f}" y="{words.y:.1f}" dy=".35em" font-size="{words.size:g}"{weight} '
        f'text-anchor="{words.anchor}"{turn}>{escape(words.text)}</text>'
    )


def _mark(mark: Mark) -> str:
    x, y, r = mark.x, mark.y, mark.size
    paint = f"f-{mark.pen if mark.filled else 'ground'} s-{mark.pen}"
    if mark.kind == "circle":
        return f'<circle class="{paint}" stroke-width="2" cx="{x:.1f}" cy="{y:.1f}" r="{r:g}"/>'
    if mark.kind == "diamond":
        r += 1.5
        corners = f"{x:.1f},{y - r:.1f} {x + r:.1f},{y:.1f} {x:.1f},{y + r:.1f} {x - r:.1f},{y:.1f}"
        return f'<polygon class="{paint}" stroke-width="2" points="{corners}"/>'
    path = f"M{x - r:.1f} {y - r:.1f}L{x + r:.1f} {y + r:.1f}M{x - r:.1f} {y + r:.1f}L{x + r:.1f} {y - r:.1f}"
    return f'<path class="none s-{mark.pen}" stroke-width="2.5" d="{path}"/>'
