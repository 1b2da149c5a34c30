"""A loop that stays as it is: what it reads, saves and loads is recorded from outside."""

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from labkit.detect.crash.measures import saves, states_not_restored
from labkit.record import store
from labkit.record.probe import Probe
from labkit.watch import tell_state, watch_load, watch_loader, watch_save


def run_of(folder, program):
    with Probe(folder / "rank-00000.jsonl", rank=0, world_size=1) as probe:
        program(probe)
    return store.read_run(folder, "variant", 1.0, 1)


def loader(samples=10, batch=4) -> DataLoader:
    return DataLoader(TensorDataset(torch.arange(samples * 2.0).reshape(samples, 2)), batch_size=batch)


def test_each_pass_over_a_watched_loader_is_an_epoch_and_each_batch_a_step(tmp_path):
    def program(probe):
        plain = loader()
        watched = watch_loader(plain, probe)
        assert len(watched) == len(plain) == 3 and watched.batch_size == 4 and watched.dataset is plain.dataset
        for _ in range(2):
            for own, batch in zip(plain, watched, strict=True):
                assert torch.equal(own[0], batch[0])

    log = run_of(tmp_path, program).ranks[0]
    assert [step.epoch for step in log.steps] == [0, 0, 0, 1, 1, 1]
    assert [len(step.digests["train"]) for step in log.steps] == [4, 4, 2] * 2
    assert [event.fields["epoch"] for event in log.events] == [0, 1], "both were read to their end"
    assert all([span.name for span in step.spans] == ["fetch"] for step in log.steps)


def test_an_epoch_that_is_left_early_is_not_told_as_a_whole_one(tmp_path):
    def program(probe):
        for _ in watch_loader(loader(), probe):
            break

    log = run_of(tmp_path, program).ranks[0]
    assert len(log.steps) == 1 and not log.events


def test_a_watched_loader_has_no_attribute_and_no_length_that_its_own_has_not(tmp_path):
    def program(probe):
        watched = watch_loader(iter([torch.ones(2, 1)]), probe)
        with pytest.raises(TypeError):
            len(watched)
        with pytest.raises(AttributeError):
            watched.sampler  # noqa: B018

    run_of(tmp_path, program)


def test_a_save_is_timed_and_its_bytes_are_counted(tmp_path):
    path = tmp_path / "checkpoint"

    def program(probe):
        with watch_save(probe, 10, path):
            path.mkdir()
            (path / "weights").write_bytes(b"12345")
            (path / "place").write_bytes(b"123")

    run = run_of(tmp_path, program)
    (save,) = saves(run)
    assert (save.of_step, save.num_bytes, save.path) == (10, 8, str(path)) and save.stall_s == save.write_s > 0


def test_a_save_that_fails_is_told_and_its_error_goes_on(tmp_path):
    def program(probe):
        with pytest.raises(OSError, match="disk is full"), watch_save(probe, 10, tmp_path / "checkpoint"):
            raise OSError("the disk is full")

    (event,) = run_of(tmp_path, program).ranks[0].events
    assert event.name == "save_failed" and event.fields == {"of_step": 10, "error": "the disk is full"}


def test_a_load_that_finds_nothing_is_of_step_0(tmp_path):
    def program(probe):
        with watch_load(probe, tmp_path / "none"):
            pass
        with watch_load(probe, tmp_path / "some") as found:
            found.step = 7

    nothing, some = (event.fields for event in run_of(tmp_path, program).ranks[0].events)
    assert (nothing["of_step"], nothing["path"]) == (0, "") and (some["of_step"], some["path"]) == (
        7,
        str(tmp_path / "some"),
    )


def test_a_state_that_does_not_come_back_is_known_from_what_was_told(tmp_path):
    def told(number, when, **hashes):
        path = tmp_path / ("rank-00000.jsonl" if number == 0 else f"rank-00000.attempt{number}.jsonl")
        with Probe(path, rank=0, world_size=1, attempt=number) as probe:
            tell_state(probe, when, 3, hashes)

    told(0, "saved", model="a", scheduler="b")
    told(1, "resumed", model="a", scheduler="another")
    assert states_not_restored(store.read_run(tmp_path, "variant", 1.0, 2)) == ["scheduler"]
