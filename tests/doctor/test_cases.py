"""Every case: its fault is found, at its place, and nothing is found of its repair."""

from __future__ import annotations

import pytest
from scripts_of import Case, cases, skip_without

pytestmark = [pytest.mark.ranks, pytest.mark.timeout(180)]
each = pytest.mark.parametrize("case", cases(), ids=lambda case: case.path.stem)


@each
def test_the_fault_is_found_at_its_place_and_no_other(examine, case: Case):
    skip_without(case.needs)
    seen = examine(case.path, "sick", *case.arguments, ranks=case.ranks)
    assert set(case.found) <= set(seen.found) <= {*case.found, *case.may}
    if case.line is not None:
        assert {seen.found[reason].where for reason in case.found} == {f"{case.path.name}:{case.line}"}


@each
def test_nothing_is_found_of_its_repair(examine, case: Case):
    skip_without(case.needs)
    seen = examine(case.path, "repaired", *case.arguments, ranks=case.ranks)
    assert not seen.found
    assert not seen.ended.stood_still and seen.ended.code == 0
