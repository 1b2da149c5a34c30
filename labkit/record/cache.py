"""Where labkit keeps what it may forget: the newest runs, a machine's baseline, long records as columns."""

from __future__ import annotations

import os
from pathlib import Path

import platformdirs


def cache_folder() -> Path:
    """The user's cache folder (LABKIT_CACHE overrides it)."""
    return Path(os.environ.get("LABKIT_CACHE") or platformdirs.user_cache_dir("labkit"))
