"""What the probe writes is what the store reads."""

import math
import os

import numpy as np
import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from labkit.errors import UnknownName, UsageError
from labkit.record.batches import digest_rows, digest_tensors
from labkit.record.columns import NOT_HASHED
from labkit.record.probe import Probe
from labkit.record.store import read_rank
from labkit.record.whole_steps import AT_ONCE, Told


@pytest.fixture
def probe(tmp_path):
    probe = Probe(tmp_path / "rank-00000.jsonl", rank=2, world_size=4, threads=3, barrier_ns=17)
    yield probe
    probe.close(finished=False)


def written(probe, **how):
    probe.close(**how)
    return read_rank(probe.path)


def pairs(size: int):
    return [(torch.arange(i, i + 2.0), torch.zeros(2)) for i in range(0, size, 2)]


def test_the_head_says_who_wrote_and_what_the_program_declared(probe):
    probe.declare(dataset_size=97)
    probe.declare(model="mlp")
    probe.begin_step()
    head = written(probe).head
    assert (head.rank, head.world_size, head.threads, head.barrier_ns) == (2, 4, 3, 17)
    assert head.facts == {"dataset_size": 97, "model": "mlp"}


def test_facts_after_the_first_step_are_refused(probe):
    probe.begin_step()
    probe.end_step()
    with pytest.raises(RuntimeError, match=r"declare\(dataset_size\) came after the first step; call it before"):
        probe.declare(dataset_size=97)


def test_a_step_holds_its_spans_scalars_counts_ids_and_digests(probe):
    probe.begin_step(epoch=3)
    with probe.span("forward"), probe.span("wait", "comm"):
        pass
    probe.add_span("copy", "data", 5, 9)
    probe.scalar("loss", 0.1)
    probe.count("bytes", 8)
    probe.count("bytes", 4)
    probe.samples("train", torch.eye(2), torch.tensor([7, 9]))
    probe.begin_step(epoch=4)  # closes the one that is open
    first, second = written(probe).steps
    assert [(s.name, s.lane) for s in first.spans] == [("wait", "comm"), ("forward", "compute"), ("copy", "data")]
    assert all(s.end_ns >= s.start_ns for s in first.spans) and first.start_ns <= first.end_ns <= second.start_ns
    assert (first.step, first.epoch, first.scalar("loss"), first.counts) == (0, 3, 0.1, {"bytes": 12})
    assert (first.ids, first.digests) == ({"train": [7, 9]}, {"train": digest_rows(torch.eye(2))})
    assert (second.step, second.epoch, second.spans, second.scalars, second.ids) == (1, 4, [], {}, {})


@pytest.mark.parametrize("value", [1.5, -0.0, 1e300, 3, math.inf, -math.inf, math.nan, np.float32(0.5), torch.tensor(2.0)])
def test_every_number_comes_back(probe, value):
    probe.begin_step()
    probe.scalar("x", value)
    back = written(probe).steps[0].scalar("x")
    assert back == float(value) or (math.isnan(back) and math.isnan(value))


def test_a_span_closes_when_its_body_raises(probe):
    probe.begin_step()
    with pytest.raises(ZeroDivisionError), probe.span("forward"):
        raise ZeroDivisionError
    assert [s.name for s in written(probe).steps[0].spans] == ["forward"]


def test_events_digests_and_what_was_seen_outside_steps_come_back(probe):
    probe.begin_step()
    probe.event("fault", at_step=0, why="planned")
    probe.end_step()
    probe.seen("validation", 1, torch.eye(2), [4, 5])
    value = probe.digest("weights", [torch.ones(3)])
    log = written(probe)
    assert (log.events[0].name, log.events[0].step, log.events[0].fields) == ("fault", 0, {"at_step": 0, "why": "planned"})
    assert (log.seen[0].name, log.seen[0].epoch, log.seen[0].ids) == ("validation", 1, [4, 5])
    assert log.seen[0].digests == digest_rows(torch.eye(2))
    assert log.digests == {"weights": value}


def test_a_log_is_finished_only_if_the_probe_was_closed_as_such(probe, tmp_path):
    probe.begin_step()
    assert not written(probe, finished=False).finished
    assert written(Probe(tmp_path / "other.jsonl")).finished


def test_a_with_block_closes_the_probe_and_leaves_it_unfinished_where_it_raised(probe, tmp_path):
    with probe:
        probe.begin_step()
    assert read_rank(probe.path).finished
    with pytest.raises(ZeroDivisionError), Probe(tmp_path / "rank-00001.jsonl", rank=1, world_size=2) as other:
        other.begin_step()
        1 / 0  # noqa: B018
    log = read_rank(tmp_path / "rank-00001.jsonl")
    assert not log.finished and len(log.steps) == 1, "what it saw is kept"


def test_closing_again_is_harmless_and_so_is_ending_no_step(probe):
    probe.end_step()
    probe.close()
    probe.close(finished=False)
    log = read_rank(probe.path)
    assert log.finished and log.steps == ()


def test_arrays_are_kept_beside_the_file(probe):
    values = np.arange(3.0)
    probe.array("weights", values)
    values[:] = 0  # the probe keeps a copy
    probe.close()
    with np.load(probe.path.with_suffix(".npz")) as kept:
        assert kept["weights"].tolist() == [0, 1, 2]


def test_every_finished_step_is_on_disk_at_once(probe):
    for _ in probe.batches(pairs(4)):
        assert len(read_rank(probe.path).steps if probe.step else ()) == probe.step


def test_batches_are_yielded_digested_and_ended(probe):
    batches = pairs(6)
    yielded = list(probe.batches(batches, epoch=2))
    log = written(probe)
    assert all(one is other for one, other in zip(yielded, batches, strict=True))
    assert [(s.step, s.epoch, s.digests["train"]) for s in log.steps] == [
        (i, 2, digest_rows(batch[0])) for i, batch in enumerate(batches)
    ]
    assert [(s.spans[0].name, s.spans[0].lane) for s in log.steps] == [("fetch", "data")] * 3
    assert [(e.name, e.fields) for e in log.events] == [("epoch_end", {"epoch": 2})]


@pytest.mark.parametrize(
    ("batch", "ids_at"),
    [
        ((torch.ones(2, 3), torch.zeros(2), torch.tensor([5, 6])), 2),
        ([torch.ones(2, 3), [5, 6]], -1),
        ({"image": torch.ones(2, 3), "id": [5, 6]}, "id"),
    ],
)
def test_ids_are_recorded_from_where_the_caller_says_they_are(probe, batch, ids_at):
    list(probe.batches([batch], ids_at=ids_at))
    step = written(probe).steps[0]
    assert (step.ids, step.digests) == ({"train": [5, 6]}, {"train": digest_rows(torch.ones(2, 3))})


def test_samples_come_after_labels_in_the_mappings_of_some_collators(probe):
    list(
        probe.batches([{"labels": torch.zeros(2), "input_ids": torch.ones(2, 3)}, {"x": torch.ones(2), "y": torch.zeros(2)}])
    )
    steps = written(probe).steps
    assert [step.digests["train"] for step in steps] == [digest_rows(torch.ones(2, 3)), digest_rows(torch.ones(2))]


def test_a_batch_in_which_samples_cannot_be_told_says_what_to_do_instead(probe):
    for batch in (object(), {}, ()):
        with pytest.raises(UsageError, match=r"given (object|dict|tuple); .*probe.samples"):
            list(probe.batches([batch]))


def test_a_batch_may_be_one_tensor_and_a_wrong_place_of_ids_is_named(probe):
    list(probe.batches([torch.ones(2, 3)]))
    with pytest.raises(UsageError, match=r"ids_at=3, but a batch has 2 parts"):
        list(probe.batches([(torch.ones(2), torch.ones(2))], ids_at=3))


@pytest.mark.parametrize("max_steps", [1, 2, 3, 4, 5])
def test_max_steps_caps_all_epochs_together_and_a_whole_epoch_ends(probe, max_steps):
    for epoch in range(2):
        list(probe.batches(pairs(6), epoch=epoch, max_steps=max_steps))
    log = written(probe)
    assert len(log.steps) == max_steps
    assert [e.fields["epoch"] for e in log.events] == ([0] if max_steps >= 3 else [])


def test_a_stream_that_was_capped_cannot_say_that_it_was_whole(probe):
    list(probe.batches(iter(pairs(6)), max_steps=3))
    assert written(probe).events == ()


def test_the_body_may_raise_and_its_step_is_still_written(probe):
    with pytest.raises(ZeroDivisionError):
        for _ in probe.batches(pairs(6)):
            raise ZeroDivisionError
    log = written(probe, finished=False)
    assert (len(log.steps), log.events) == (1, ())


def test_a_loop_that_is_left_has_written_its_step(probe):
    for _ in probe.batches(pairs(6)):
        break
    assert len(read_rank(probe.path).steps) == 1


def test_no_step_begins_at_the_end_of_an_epoch(tmp_path):
    """Else a fault planned for the first step of the next epoch would fire twice."""
    begun = []
    probe = Probe(tmp_path / "rank.jsonl", on_step=begun.append)
    for epoch in range(2):
        list(probe.batches(pairs(4), epoch=epoch))
    probe.close()
    assert begun == [0, 1, 2, 3]


def test_a_real_loader_is_read_through_the_probe(probe):
    data = TensorDataset(torch.arange(5.0), torch.zeros(5), torch.arange(5))
    list(probe.batches(DataLoader(data, 2), ids_at=2))
    assert [s.ids["train"] for s in written(probe).steps] == [[0, 1], [2, 3], [4]]


def test_equal_rows_have_equal_digests_and_others_do_not():
    one, other, same = digest_rows(torch.tensor([[1.0, 2.0], [2.0, 1.0], [1.0, 2.0]]))
    assert one == same != other  # the order of a sample's elements counts


def test_two_different_batches_with_one_sum_have_different_digests():
    """The printed sum of a batch is a weak checksum."""
    one, other = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[4.0, 3.0], [2.0, 1.0]])
    assert one.sum() == other.sum()
    assert not set(digest_rows(one)) & set(digest_rows(other))
    assert digest_tensors([one]) != digest_tensors([other])
    assert digest_tensors([one, other]) != digest_tensors([other, one])


@pytest.mark.parametrize(
    "dtype", [torch.uint8, torch.int64, torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.bool]
)
def test_samples_of_every_kind_are_told_apart_by_their_bits(dtype):
    rows = torch.tensor([[0, 1, 1], [1, 0, 1], [0, 1, 1]]).to(dtype)
    one, other, same = digest_rows(rows)
    assert one == same != other
    assert digest_tensors([rows]) == digest_tensors([rows.clone()]) != digest_tensors([rows.flip(0).flip(1)])


def test_bfloat16_keeps_every_bit():
    near = torch.tensor([[1.0], [1.0 + 2**-7], [1e30], [2e30], [1e-30], [2e-30]], dtype=torch.bfloat16)
    assert len(set(digest_rows(near))) == 6


@pytest.mark.parametrize("batch", [torch.arange(24.0).reshape(4, 6), torch.arange(24.0).reshape(4, 6).bfloat16()])
def test_how_a_batch_lies_in_memory_does_not_matter(batch):
    for laid_out in (batch.T.contiguous().T, torch.cat([batch, batch], 1)[:, :6], batch.repeat_interleave(2, 0)[::2]):
        assert not laid_out.is_contiguous()
        assert digest_rows(laid_out) == digest_rows(batch)
        assert digest_tensors([laid_out]) == digest_tensors([batch])


def test_samples_may_be_numbers_arrays_or_need_gradients():
    assert digest_rows(torch.tensor([1, 2, 1])) == digest_rows(np.array([1, 2, 1]))
    assert digest_rows(torch.ones(2, 3, requires_grad=True)) == digest_rows(torch.ones(2, 3))
    assert digest_rows(torch.ones(0, 3)) == []


def forked(call) -> str:
    """What a process that was forked off here says when it calls."""
    reads, writes = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            call()
            os.write(writes, b"nothing")
        except BaseException as error:
            os.write(writes, f"{type(error).__name__}: {error}".encode())
        os._exit(0)
    os.close(writes)
    os.waitpid(pid, 0)
    with open(reads) as pipe:
        return pipe.read()


@pytest.mark.filterwarnings("ignore:.*multi-threaded, use of fork:DeprecationWarning")
def test_a_process_that_was_forked_off_cannot_spoil_the_file(probe):
    probe.begin_step()
    for call in (probe.end_step, lambda: probe.event("x")):
        said = forked(call)
        assert "UsageError" in said and "forked" in said and "a probe and a file of its own" in said
    log = written(probe)
    assert len(log.steps) == 1 and log.events == () and log.finished


def test_nothing_is_recorded_after_the_end(probe):
    probe.close()
    probe.begin_step()
    for call in (probe.end_step, lambda: probe.event("x")):
        with pytest.raises(UsageError, match="is closed, and nothing more can be recorded"):
            call()


@pytest.mark.parametrize("value", [None, [1], torch.ones(2), {}])
def test_what_the_record_could_not_be_read_with_is_refused_before_it_is_written(probe, value):
    with pytest.raises(UsageError, match="declare: size must be a number, true or false, or text; given"):
        probe.declare(size=value)
    with pytest.raises(UsageError, match="event\\('x'\\): size must be"):
        probe.event("x", size=value)
    assert written(probe).events == ()


def test_facts_and_fields_may_be_numbers_of_numpy_and_torch_and_need_not_be_finite(probe):
    probe.declare(size=np.int64(3), share=math.nan)
    probe.event("x", loss=torch.tensor(0.5), most=math.inf)
    log = written(probe)
    assert log.head.facts == {"size": 3, "share": "nan"}
    assert log.events[0].fields == {"loss": 0.5, "most": "inf"}


def test_counters_and_series_are_whole_numbers(probe):
    probe.begin_step()
    probe.count("n", np.int64(2))
    probe.series("sizes", torch.tensor([1, 2]))
    for call in (lambda: probe.count("n", 1.5), lambda: probe.series("sizes", [0.5])):
        with pytest.raises(TypeError):
            call()
    step = written(probe).steps[0]
    assert step.counts == {"n": 2} and step.series == {"sizes": [1, 2]}


def test_a_lane_that_no_record_has_is_refused(probe):
    for call in (lambda: probe.span("x", "gpu"), lambda: probe.add_span("x", "gpu", 0, 1)):
        with pytest.raises(UnknownName, match="no lane of a span 'gpu'; there are: .*compute"):
            call()


def test_a_head_that_could_not_be_read_is_refused(tmp_path):
    with pytest.raises(UsageError, match="Expected `str`, got `null`"):
        Probe(tmp_path / "rank-00000.jsonl", device=None)


@pytest.mark.parametrize(
    ("ids", "said"), [([2**63], "64 bits"), (torch.ones(2), "whole numbers"), (torch.ones(2, 2), "whole numbers")]
)
def test_ids_that_no_record_can_hold_are_refused(probe, ids, said):
    probe.begin_step()
    with pytest.raises(UsageError, match=said):
        probe.samples("train", torch.ones(1), ids)


def test_samples_that_are_no_tensor_are_refused(probe):
    with pytest.raises(UsageError, match="the samples of a batch must be a tensor or an array, a row a sample; given str"):
        list(probe.batches([["a", "b"]]))
    assert len(digest_rows(np.float32(1))) == 1


def test_what_torchrun_says_counts_where_nothing_is_given(tmp_path, monkeypatch):
    for name, value in (("RANK", "3"), ("LOCAL_RANK", "1"), ("WORLD_SIZE", "4")):
        monkeypatch.setenv(name, value)
    head = written(Probe(tmp_path / "a.jsonl")).head
    assert (head.rank, head.local_rank, head.world_size) == (3, 1, 4)
    head = written(Probe(tmp_path / "b.jsonl", rank=0, local_rank=0, world_size=2)).head
    assert (head.rank, head.local_rank, head.world_size) == (0, 0, 2)
    monkeypatch.setenv("RANK", "one")
    with pytest.raises(UsageError, match="RANK must be a whole number, .* 'one'; .* give Probe rank="):
        Probe(tmp_path / "c.jsonl")
    for name in ("RANK", "LOCAL_RANK", "WORLD_SIZE"):
        monkeypatch.delenv(name)
    head = written(Probe(tmp_path / "d.jsonl")).head
    assert (head.rank, head.local_rank, head.world_size) == (0, 0, 1)


def test_a_file_that_cannot_be_made_says_what_to_give(tmp_path):
    for path in (tmp_path, tmp_path / "none" / "rank-00000.jsonl"):
        with pytest.raises(UsageError, match=r"the probe cannot write .*; give a file in a folder that exists"):
            Probe(path)


def test_samples_by_their_ids_alone_have_as_many_hashes_that_say_nothing(probe):
    probe.begin_step()
    probe.add_samples("train", [11, 12], [1, 2])
    probe.add_ids("train", [3])
    probe.add_samples("train", [14], [4])
    probe.close()
    (only,) = read_rank(probe.path).steps
    assert list(only.ids["train"]) == [1, 2, 3, 4]
    assert list(only.digests["train"]) == [NOT_HASHED] * 4


def test_whole_steps_are_written_together_and_before_what_comes_after(probe, monkeypatch):
    monkeypatch.setattr("labkit.record.whole_steps.AT_ONCE_NS", 10**18)

    def told(at):
        scalars = {"loss_local": float("nan"), "lr_used": None}
        return Told([("fetch", "data", at, at + 1)], scalars, {"updates": 1, "clips": 0}, {"train": [at]})

    for at in range(AT_ONCE + 3):
        probe.step += 1
        probe.whole_step(at // 4, at, told, at)
    assert len(probe.path.read_bytes().splitlines()) == 1 + AT_ONCE
    probe.event("epoch_end", epoch=1)
    probe.begin_step()
    probe.close()
    log = read_rank(probe.path)
    assert [step.step for step in log.steps] == list(range(AT_ONCE + 4))
    first = log.steps[0]
    assert (dict(first.counts), list(first.scalars), first.spans[0].lane) == ({"updates": 1}, ["loss_local"], "data")
    assert [step.ids["train"] for step in log.steps[:-1]] == [[at] for at in range(AT_ONCE + 3)]
    assert '"event"' in probe.path.read_text().splitlines()[AT_ONCE + 4]


def test_a_step_that_began_long_ago_is_not_kept_waiting(probe):
    probe.step += 1
    probe.whole_step(0, 0, lambda seen: Told([], {}, {"updates": seen}), 1)
    assert len(probe.path.read_bytes().splitlines()) == 2
