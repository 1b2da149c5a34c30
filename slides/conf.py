"""Sphinx's settings for the decks. Built by build_decks.py, which says which decks, and where records are kept."""

import sys
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE / "_ext"))

from decks.fitting import SLIDE_PX  # noqa: E402

project = "labkit"
author = "labkit"
extensions = ["myst_parser", "sphinx_revealjs", "decks"]
exclude_patterns = ["README.md", "INSTRUCTOR.md", "_*"]
suppress_warnings = ["toc.not_included"]
nitpicky = True
smartquotes = False

myst_enable_extensions = ["dollarmath", "colon_fence", "attrs_block"]
myst_heading_anchors = 2

html_title = "labkit"
templates_path = ["_templates"]
revealjs_static_path = ["_static"]
revealjs_style_theme = "white"
revealjs_css_files = ["deck.css"]
revealjs_use_section_ids = True
revealjs_notes_from_comments = False
revealjs_script_plugins = [{"src": "revealjs/plugin/notes/notes.js", "name": "RevealNotes"}]
revealjs_script_conf = {
    "width": SLIDE_PX[0],
    "height": SLIDE_PX[1],
    "margin": 0,
    "center": False,
    "controls": False,
    "hash": True,
    "slideNumber": "c/t",
    "transition": "none",
    "defaultTiming": 60,  # without it the presenter's view leaves the pace out; each slide has its own
    "navigationMode": "linear",
    "pdfSeparateFragments": False,
    "pdfMaxPagesPerSlide": 1,
}
