"""What other programs take of the cores, and when it could have mattered."""

import msgspec
import pytest

from labkit.record.load import Load, heaviest


def load(during, *, cores=2, wanted=2, before=0.0):
    return Load(cores=cores, wanted=wanted, before=before, during=during, own=1.0, seconds=3.0)


@pytest.mark.parametrize(
    ("of", "matters", "heavy"),
    [
        (load(0.05), False, False),
        (load(0.3), True, False),
        (load(1.8), True, True),
        (load(10.0, cores=64, wanted=4), False, False),
        (load(10.0, cores=64, wanted=64), True, False),
        (load(0.9, wanted=1), False, False),
        (load(1.8, wanted=1), True, True),
        (load(0.6, wanted=8), True, True),
    ],
)
def test_others_matter_where_they_take_cores_that_the_ranks_wanted(of, matters, heavy):
    assert (of.matters, of.heavy) == (matters, heavy)
    assert 0 <= of.share <= 1 and of.pressure >= 1


def test_it_is_said_in_cores_and_of_several_launches_the_most_hindered_counts():
    assert load(1.8).said == "other programs used 1.8 of 2 cores"
    assert load(0.4, cores=1, wanted=1).said == "other programs used 0.4 of 1 core"
    assert heaviest([None, load(0.2), load(1.1), load(20.0, cores=64, wanted=2)]) == load(1.1)
    assert heaviest([None]) is None


def test_a_record_keeps_it_and_one_without_it_is_read_as_before(tmp_path):
    from labkit.record import store

    from ..builders import record_of, run_of

    found = record_of(run_of([[[[1, 2]], [[3, 4]]]]))
    assert "other programs" not in found.provenance.label()
    said = msgspec.structs.replace(found.provenance, load=load(1.8))
    assert "other programs used 1.8 of 2 cores" in said.label()
    kept = msgspec.json.decode(msgspec.json.encode(said), type=type(said))
    assert kept.load == load(1.8)
    old = {k: v for k, v in msgspec.to_builtins(said).items() if k != "load"}
    assert msgspec.convert(old, type(said)).load is None
    assert store._RunEntry(1.0, 1).load is None
