"""Scripts that do right: nothing is found of them."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "healthy"
pytestmark = [pytest.mark.ranks, pytest.mark.timeout(180)]


def ranks_of(path: Path) -> int:
    """RANKS, as the script says it."""
    return next(
        ast.literal_eval(node.value)
        for node in ast.parse(path.read_text()).body
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "RANKS"
    )


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_nothing_is_found_of_a_script_that_does_right(examine, path: Path):
    seen = examine(path, ranks=ranks_of(path))
    assert seen.ended.code == 0 and not seen.ended.stood_still
    assert not seen.found
    assert sum(verdict.status == "clear" for verdict in seen.verdicts.values()) >= 3  # it was examined
