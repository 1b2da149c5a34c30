"""Where the data that come with labkit lie."""

from __future__ import annotations

from pathlib import Path


def data_folder() -> Path:
    """Where the shipped data lie: inside an installed package, or beside it in a checkout."""
    package = Path(__file__).resolve().parent.parent
    inside = package / "data"
    return inside if inside.is_dir() else package.parent / "data"
