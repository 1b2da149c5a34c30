"""A Sphinx extension: slides whose figures, tables, verdicts and numbers are drawn from records while the deck is built.

slides/README.md says how a deck is written; `directives` holds what it is written with.
"""

from __future__ import annotations

from typing import Any

from sphinx.application import Sphinx

from . import directives, maths


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_config_value("decks_quick", False, "env")
    app.add_config_value("decks_fresh", False, "env")
    app.add_config_value("decks_records", "", "env")
    app.add_config_value("decks_out", "", "env")
    app.connect("config-inited", _mark_quick_builds, priority=100)  # before sphinx-revealjs reads the list
    directives.setup(app)
    maths.setup(app)
    return {"parallel_read_safe": False, "parallel_write_safe": True}


def _mark_quick_builds(app: Sphinx, config: Any) -> None:
    if config.decks_quick:
        config.revealjs_css_files = [*config.revealjs_css_files, "quick.css"]
