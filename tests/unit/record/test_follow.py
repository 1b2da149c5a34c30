"""A run is followed while its ranks append to their files: each line once, torn or hostile ones without harm."""

import itertools
import json
import math
import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labkit.record.follow import MOST_BYTES, MOST_ROWS, Follower, Tail, as_number
from labkit.record.gone import gone_of_run
from labkit.record.probe import Probe
from labkit.record.rank_files import rank_file
from labkit.record.schema import Event, RankLog, Run
from labkit.record.spans import BUSY, COUNT, END, NAME, ORDER, START, STEP, TRACK

from ..builders import head, step
from ..quick import quick

MS = 1_000_000


def line_of(number, *, start=None, spans=None, **fields):
    start = number * 10 * MS if start is None else start
    spans = [["forward", "compute", start, start + 4 * MS], ["backward", "compute", start + 4 * MS, start + 9 * MS]]
    written = {"kind": "step", "step": number, "epoch": 0, "start_ns": start, "end_ns": start + 10 * MS, "spans": spans}
    return json.dumps(written | fields).encode() + b"\n"


HEAD = b'{"kind":"head","schema":1,"rank":0}\n'


def write(folder, rank, content, attempt=0):
    with rank_file(folder, rank, attempt).open("ab") as file:
        file.write(content)


def test_each_line_is_seen_once_and_only_what_is_new(tmp_path):
    follower = Follower(tmp_path, 2)
    assert follower.look().is_empty, "no rank has a file yet"
    write(tmp_path, 0, HEAD + line_of(0, scalars={"loss_local": 2.5}))
    first = follower.look()
    assert [row[STEP] for row in first.spans] == [0, 0] and first.losses.tolist() == [[0, 0, 2.5]]
    assert follower.look().is_empty
    write(tmp_path, 0, line_of(1))
    write(tmp_path, 1, HEAD + line_of(0))
    second = follower.look()
    assert sorted((row[0], row[1]) for row in second.steps) == [(0, 1), (1, 0)]
    assert first.names == ["forward", "backward"] and set(second.spans[:, NAME]) == {0, 1}
    follower.close()


def test_times_are_milliseconds_from_the_first_step_that_was_seen(tmp_path):
    write(tmp_path, 0, HEAD + line_of(3, start=5_000 * MS))
    look = Follower(tmp_path, 1).look()
    assert look.spans[:, (START, END)].tolist() == [[0, 4], [4, 9]] and look.steps[0].tolist() == [0, 3, 0, 10, 0]


@quick
@given(cuts=st.lists(st.integers(1, 400), max_size=12))
def test_lines_torn_anywhere_come_out_whole(tmp_path_factory, cuts):
    path = tmp_path_factory.mktemp("torn") / "rank-00000.jsonl"
    whole = HEAD + b"".join(line_of(number) for number in range(5))
    tail, seen = Tail(path), []
    places = [0, *sorted(min(cut, len(whole)) for cut in cuts), len(whole)]
    for start, end in itertools.pairwise(places):
        with path.open("ab") as file:
            file.write(whole[start:end])
        seen += tail.read()
    assert [getattr(line, "step", None) for line in seen] == [None, 0, 1, 2, 3, 4] and tail.unreadable == 0
    tail.close()


def test_samples_are_skipped_and_a_long_line_still_read(tmp_path):
    write(tmp_path, 0, HEAD + line_of(0, digests={"train": list(range(2000))}, ids={"train": list(range(2000))}))
    assert len(Follower(tmp_path, 1).look().spans) == 2


def test_what_a_rank_writes_faster_than_it_is_read_is_left_out_and_counted(tmp_path):
    write(tmp_path, 0, HEAD + b"".join(line_of(number) for number in range(4000)))
    follower = Follower(tmp_path, 1)
    look = follower.look()
    assert look.left_out_bytes > 0 and look.steps[-1][1] == 3999 and look.steps[0][1] > 0
    assert len(look.steps) * len(line_of(1)) < 1.1 * MOST_BYTES
    write(tmp_path, 0, line_of(4000))
    assert follower.look().steps[:, 1].tolist() == [4000], "the next line is whole again"


def test_a_line_without_an_end_does_not_grow_for_ever(tmp_path):
    tail = Tail(tmp_path / "rank-00000.jsonl")
    for _ in range(5):
        write(tmp_path, 0, b"x" * (MOST_BYTES // 2))
        assert tail.read() == [] and len(tail._rest) <= MOST_BYTES
    write(tmp_path, 0, b"x\n" + line_of(7))
    assert [line.step for line in tail.read()] == [7]


HOSTILE = [
    b"not json\n",
    b'{"kind":"nobody knows"}\n',
    b'{"kind":"step","step":1e99,"epoch":0,"start_ns":1,"end_ns":2}\n',
    b'{"kind":"step","step":1,"start_ns":"soon","end_ns":2}\n',
    b'{"kind":"step","step":1,"start_ns":1,"end_ns":2,"spans":[["only a name"]]}\n',
    b"[" * 100_000 + b"\n",
    b"\xff\xfe\x00\n",
    b"\n",
]


def test_hostile_lines_are_passed_over(tmp_path):
    write(tmp_path, 0, HEAD + b"".join(HOSTILE) + line_of(1))
    look = Follower(tmp_path, 1).look()
    assert look.steps[:, 1].tolist() == [1]


def test_hostile_values_do_no_harm(tmp_path):
    odd = {"loss_local": {"a": 1}, "version_pulled": "many", "wire_sent_bytes": True}
    spans = [["\x1b[31m<script>alert(1)</script>" + "x" * 500, "no such lane", 9 * MS, 2 * MS]]
    line = json.loads(line_of(0)) | {"spans": spans, "scalars": odd, "counts": odd}
    write(tmp_path, 0, HEAD + json.dumps(line).encode() + b"\n")
    look = Follower(tmp_path, 1).look()
    assert look.counters == {} and not len(look.losses)
    (name,) = look.names
    assert "\x1b" not in name and len(name) <= 60
    assert look.spans[0, END] >= look.spans[0, START], "a span that ends before it begins has no length"


def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path):
    os.mkfifo(rank_file(tmp_path, 0))
    assert Follower(tmp_path, 1).look().is_empty


def test_losses_that_are_no_number_are_kept_as_what_they_are(tmp_path):
    values = ["nan", "inf", 0.5]
    write(tmp_path, 0, HEAD + b"".join(line_of(n, scalars={"loss_local": value}) for n, value in enumerate(values)))
    losses = Follower(tmp_path, 1).look().losses[:, 2]
    assert math.isnan(losses[0]) and math.isinf(losses[1]) and losses[2] == 0.5


def test_bytes_add_up_and_versions_are_the_newest(tmp_path):
    counts = {"wire_sent_bytes": 100}
    lines = [line_of(n, counts=counts, scalars={"version_pulled": n, "version_pushed": n + 2}) for n in range(3)]
    write(tmp_path, 0, HEAD + b"".join(lines))
    assert Follower(tmp_path, 1).look().counters == {0: {"wire_sent_bytes": 300, "version_pulled": 2, "version_pushed": 4}}


def test_thousands_of_spans_are_joined_and_none_is_lost_from_the_count(tmp_path):
    for rank in range(8):
        spans = [["forward", "compute", n * 1000, n * 1000 + 900] for n in range(2000)]
        one = json.loads(line_of(0, start=0)) | {"spans": spans}
        write(tmp_path, rank, HEAD + json.dumps(one).encode() + b"\n")
    look = Follower(tmp_path, 8).look()
    assert len(look.spans) <= MOST_ROWS and look.spans[:, COUNT].sum() == 8 * 2000
    assert look.spans[:, BUSY].sum() == pytest.approx(8 * 2000 * 900 / 1e6)
    assert (look.spans[look.spans[:, COUNT] > 1, ORDER] == 0).all()


def test_spans_that_overlap_lie_on_tracks_of_their_own_and_are_numbered(tmp_path):
    spans = [["all_reduce", "comm", n * MS, (n + 3) * MS] for n in range(3)]
    line = json.loads(line_of(0, start=0)) | {"spans": spans}
    write(tmp_path, 0, HEAD + json.dumps(line).encode() + b"\n")
    rows = Follower(tmp_path, 1).look().spans
    assert rows[:, TRACK].tolist() == [0, 1, 2] and rows[:, ORDER].tolist() == [1, 2, 3]


def test_a_killed_rank_goes_dark_with_a_word_until_it_is_there_again(tmp_path):
    fault = {"kind": "event", "name": "fault", "step": 1, "time_ns": 12 * MS, "fields": {"fault": "kill"}}
    write(tmp_path, 0, HEAD + line_of(0) + json.dumps(fault).encode() + b"\n")
    write(tmp_path, 1, HEAD + line_of(0) + line_of(1) + line_of(2)[:40])
    follower = Follower(tmp_path, 2)
    (dark,) = follower.look(lost=(0,)).dark
    assert (dark.rank, dark.start_ms, dark.end_ms, dark.word) == (0, 12, None, "killed in step 1")
    write(tmp_path, 0, HEAD + line_of(1, start=50 * MS), attempt=1)
    write(tmp_path, 1, HEAD + line_of(1, start=60 * MS), attempt=1)
    look = follower.look(attempt=1)
    assert [(dark.rank, dark.end_ms) for dark in look.dark] == [(0, 50), (1, 60)]
    assert look.dark[1].word == "ended with it, to start again" and set(look.steps[:, 4]) == {1}


def test_a_rank_whose_process_is_gone_goes_dark_though_nothing_planned_it(tmp_path):
    write(tmp_path, 0, HEAD + line_of(0))
    follower = Follower(tmp_path, 1)
    follower.look()
    assert follower.look(lost=(0,)).dark[0].word == "its process is gone"


def test_a_rank_that_came_to_its_end_does_not_go_dark(tmp_path):
    write(tmp_path, 0, HEAD + line_of(0) + b'{"kind":"end","steps":1,"time_ns":9}\n')
    follower = Follower(tmp_path, 1)
    follower.look()
    assert follower.look(lost=(0,)).dark == []


def test_what_a_probe_writes_is_followed_step_by_step(tmp_path):
    follower = Follower(tmp_path, 1)
    with Probe(rank_file(tmp_path, 0), rank=0, world_size=1) as probe:
        for number in range(3):
            probe.begin_step()
            with probe.span("forward"):
                pass
            probe.scalar("loss_local", 1.0 / (1 + number))
            probe.end_step()
            look = follower.look()
            assert look.steps[:, 1].tolist() == [number] and look.losses[:, 2].tolist() == [1.0 / (1 + number)]


@pytest.mark.parametrize(
    "value, found", [(1, 1.0), ("nan", math.nan), ("x", None), (None, None), ([], None), (10**400, None)]
)
def test_a_number_is_taken_for_one_and_nothing_else(value, found):
    assert as_number(value) == found or (found is not None and math.isnan(as_number(value)))


def test_of_a_kept_run_the_same_stretches_are_dark():
    fault = Event("fault", 1, 130, {"fault": "kill"})
    earlier = (RankLog(head(0, 2), (step(0),), (fault,)), RankLog(head(1, 2), (step(0), step(1))))
    last = (RankLog(head(0, 2), (step(4),), finished=True), RankLog(head(1, 2), (step(5),), finished=True))
    dark = gone_of_run(Run("variant", last, 1.0, 2, earlier=(earlier,)), 0)
    assert [(one.rank, one.start_ms * 1e6, one.end_ms * 1e6) for one in dark] == [(0, 130, 400), (1, 200, 500)]
    assert np.array_equal([one.word.split()[0] for one in dark], ["killed", "ended"])
