"""Every case: its fault is found, at its place, and nothing is found of its repair."""

from __future__ import annotations

import pytest
from scripts_of import Case, cases, skip_without

pytestmark = [pytest.mark.ranks, pytest.mark.timeout(180)]
each = pytest.mark.parametrize("case", cases(), ids=lambda case: case.path.stem)


@each
def test_the_fault_is_found_at_its_place_and_no_other(examine, case: Case):
    skip_without(case.needs)
    seen = examine(case.path, "sick", *case.arguments, ranks=case.ranks, steps=case.steps)
    assert set(case.found) <= set(seen.found) <= {*case.found, *case.may}
    assert set(case.undecided) <= set(seen.undecided) and (case.found or case.undecided)
    if case.line is not None:
        of_case = [seen.found[reason] for reason in case.found] + [seen.undecided[reason] for reason in case.undecided]
        assert {verdict.where for verdict in of_case} == {f"{case.path.name}:{case.line}"}


@each
def test_nothing_is_found_of_its_repair(examine, case: Case):
    skip_without(case.needs)
    seen = examine(case.path, "repaired", *case.arguments, ranks=case.ranks, steps=case.steps)
    assert not seen.found and not set(case.undecided) & set(seen.undecided)
    assert not seen.ended.stood_still and seen.ended.code == 0
