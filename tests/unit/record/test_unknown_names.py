"""Names of a script's own are kept in its record, and are told from those that questions ask for."""

import msgspec
import pytest

from labkit.record.probe import Probe
from labkit.record.schema import Run
from labkit.record.store import read_record
from labkit.record.unknown_names import SHOWN, Unknown, said_unknown, unknown_names
from labkit.record.vocabulary import TABLES, known, near

from ..builders import record_of


def recorded(folder, write) -> list[Unknown]:
    with Probe(folder / "rank-00000.jsonl", rank=0, world_size=1) as probe:
        write(probe)
        probe.end_step()
    return unknown_names(read_record(folder))


def everything_known(probe):
    probe.declare(dataset_size=8, cores=2)
    probe.begin_step()
    probe.count("updates")
    probe.count("forwards_float16")
    probe.scalar("loss_local", 1.0)
    probe.series("bucket_bytes", [8])
    probe.event("state", when="saved", of_step=1, my_scheduler="c0ffee")
    with probe.span("matmul-float32"):
        pass


def something_unknown(probe):
    probe.declare(data_set_size=8)
    probe.begin_step()
    probe.count("update")
    probe.scalar("accuracy", 1.0)
    probe.series("buckets", [8])
    probe.event("save", of_step=1, stall=2.0)
    probe.event("saved")
    with probe.span("load my data", "data"):
        pass


def test_a_record_of_known_names_has_no_unknown_ones(tmp_path):
    assert recorded(tmp_path, everything_known) == []


def test_each_unknown_name_is_listed_once_with_the_known_one_that_it_is_most_like(tmp_path):
    assert recorded(tmp_path, something_unknown) == [
        Unknown("count", "update", "updates"),
        Unknown("event", "save.stall"),
        Unknown("event", "saved", "save"),
        Unknown("fact", "data_set_size", "dataset_size"),
        Unknown("scalar", "accuracy"),
        Unknown("series", "buckets"),
        Unknown("span", "load my data"),
    ]


def test_an_unknown_name_is_said_with_what_may_be_meant():
    assert str(Unknown("count", "update", "updates")) == "count update (did you mean updates?)"
    assert str(Unknown("scalar", "accuracy")) == "scalar accuracy"


def test_attempts_before_the_last_and_arrays_count_as_well(tmp_path):
    recorded(tmp_path, something_unknown)
    run = read_record(tmp_path).run
    earlier = msgspec.structs.replace(Run("variant", (), 1.0), earlier=(run.ranks,), arrays={"mine": None})
    names = {found.name for found in unknown_names(record_of(earlier))}
    assert {"update", "mine"} <= names


@pytest.mark.parametrize("sort", TABLES)
def test_a_name_is_known_in_its_own_sort_alone(sort):
    assert all(known(sort, name) for name in TABLES[sort])
    assert not known(sort, "no_such_name") and near(sort, "qqqqqqqq") == ""


def test_unknown_names_are_said_up_to_a_number_and_none_of_them_can_move_a_terminals_cursor():
    names = [Unknown("scalar", f"own_{number}") for number in range(SHOWN + 2)]
    assert said_unknown(names[:1]) == "no question asks for these names of your own: scalar own_0"
    assert said_unknown(names).endswith(f"own_{SHOWN - 1}, and 2 more")
    assert "\x1b" not in said_unknown([Unknown("scalar", "\x1b[2J")])
