"""What an emulated link had a part in is simulated, in every lab that can be run over one; all else is measured."""

from __future__ import annotations

import lab_cases
import msgspec
import pytest

import labkit
from labkit.record.schema import Network

pytestmark = pytest.mark.ranks

EMULATED = Network(hosts=2, way="emulated", rate_bits_per_s=1e8, reason="asked for")
OF_SEVERAL_RANKS = {slug: case.on_a_link for slug, case in lab_cases.by_slug().items() if case.on_a_link}
TIMES = ("ms", "ms a step", "µs a step", "GB/s")


def emulated(record):
    return msgspec.structs.replace(record, provenance=msgspec.structs.replace(record.provenance, network=EMULATED))


@pytest.fixture(scope="module", params=OF_SEVERAL_RANKS)
def record(request, tmp_path_factory):
    settings = OF_SEVERAL_RANKS[request.param].how
    how = {} if labkit.lab(request.param).spec.hosts == 1 else {"hosts": 1}
    return labkit.lab(request.param).run(ranks=2, device="cpu", record_dir=tmp_path_factory.mktemp("r"), **how, **settings)


def test_measures_of_the_link_are_simulated_and_all_others_keep_their_source(record):
    lab = labkit.lab(record.lab)
    before, after = lab.measures(record), lab.measures(emulated(record))
    changed = {name for name in before if before[name].source != after[name].source}
    expected = set(OF_SEVERAL_RANKS[record.lab].simulated)
    assert changed == expected & set(before) and {after[name].source for name in changed} <= {"simulated"}
    assert changed or not expected, "the record has what the link makes"


def test_evidence_of_the_link_is_simulated(record):
    lab = labkit.lab(record.lab)
    before, after = lab.judge(record), lab.judge(emulated(record))
    for one, other in zip(before, after, strict=True):
        timed = {
            name for name, quantity in one.evidence.items() if quantity.unit.split(",")[0] in ("ms", "µs a step", "GB/s")
        }
        changed = {name for name in one.evidence if one.evidence[name].source != other.evidence[name].source}
        own = {"computing", "later_than_the_middle", "worst_single", "late_when_backward_begins", "compute_time"}
        assert timed - own <= changed, one.detector


def test_every_lab_of_several_ranks_is_here():
    assert set(OF_SEVERAL_RANKS) == {spec.slug for spec in labkit.labs.specs() if spec.ranks > 1}


def test_a_link_that_was_set_does_not_become_the_machines_baseline(tmp_path):
    from labkit.errors import UsageError

    for link in ({"hosts": 2, "link": "100mbit"}, {"hosts": 2, "emulate_link": True, "link": "1gbit"}):
        with pytest.raises(UsageError, match="not the machine's own; give keep=no"):
            labkit.lab("start-here").run(ranks=2, record_dir=tmp_path / "r", **link)
    assert not (tmp_path / "r").exists()
