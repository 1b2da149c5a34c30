"""Scripts that do right: nothing is found of them."""

from __future__ import annotations

from pathlib import Path

import pytest
from scripts_of import said_of, skip_without

FOLDER = Path(__file__).parent / "healthy"
pytestmark = [pytest.mark.ranks, pytest.mark.timeout(180)]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_nothing_is_found_of_a_script_that_does_right(examine, path: Path):
    skip_without(said_of(path, "NEEDS", ""))
    seen = examine(path, ranks=said_of(path, "RANKS", 1))
    assert seen.ended.code == 0 and not seen.ended.stood_still
    assert not seen.found
    assert sum(verdict.status == "clear" for verdict in seen.verdicts.values()) >= 3  # it was examined
