"""Decks built once a session, with small runs; a deck's tests share a worker (tests/conftest.py)."""

import os
from pathlib import Path

import build_decks
import pytest


@pytest.fixture(scope="session")
def built(tmp_path_factory):
    """name -> the HTML file of that deck, in a folder of its own."""
    folder, done = tmp_path_factory.mktemp("decks"), {}

    def deck(name: str) -> Path:
        if name not in done:
            done[name] = build_decks.build([name], folder / name, records=folder / "records", quick=True)[0]
        return done[name]

    return deck


@pytest.fixture(scope="module")
def browser():
    if build_decks.chromium() is None and not os.environ.get("CI"):
        pytest.skip("needs Chromium: apt-get install chromium, or set CHROMIUM")
    with build_decks.browser() as running:
        yield running
