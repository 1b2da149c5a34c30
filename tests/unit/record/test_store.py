"""Records are kept whole, and what is damaged is named by file and line."""

import os
import re

import msgspec
import numpy as np
import pytest

from labkit.errors import RecordError
from labkit.record import store
from labkit.record.probe import Probe
from labkit.record.schema import Record

from ..builders import record_of, run_of


def write_rank(folder, rank=0, world_size=1, attempt=0, steps=2, **arrays):
    folder.mkdir(parents=True, exist_ok=True)
    probe = Probe(store.rank_file(folder, rank, attempt), rank=rank, world_size=world_size, attempt=attempt)
    for _ in range(steps):
        probe.begin_step()
    for name, values in arrays.items():
        probe.array(name, np.array(values))
    probe.close()
    return probe.path


def refusal(call, *arguments) -> str:
    with pytest.raises(RecordError) as caught:
        call(*arguments)
    return str(caught.value)


def test_ranks_and_attempts_have_files_of_their_own(tmp_path):
    assert store.rank_file(tmp_path, 3).name == "rank-00003.jsonl"
    assert store.rank_file(tmp_path, 3, attempt=1).name == "rank-00003.attempt1.jsonl"


@pytest.mark.parametrize("damage", [b"{", b"\xff\xfe", b"null", b'{"kind":"step"}', b'{"kind":"unheard-of"}'])
def test_a_damaged_line_is_named_by_file_and_number(tmp_path, damage):
    path = write_rank(tmp_path)
    lines = path.read_bytes().split(b"\n")
    path.write_bytes(b"\n".join([lines[0], damage, *lines[1:]]))
    assert f"{path}, line 2: " in refusal(store.read_rank, path)


def test_a_damaged_last_line_that_is_whole_is_an_error_too(tmp_path):
    path = write_rank(tmp_path)
    path.write_bytes(path.read_bytes() + b'{"kind":\n')
    assert f"{path}, line 5: " in refusal(store.read_rank, path)


def test_the_cut_off_last_line_of_a_killed_rank_is_tolerated_and_the_log_is_not_finished(tmp_path):
    path = write_rank(tmp_path, steps=3)
    whole = path.read_bytes()
    without_end = whole[: whole.rindex(b'{"kind":"end"')]
    for cut in range(without_end.rindex(b"\n", 0, -1) + 2, len(without_end) - 1, 5):
        path.write_bytes(whole[:cut])
        log = store.read_rank(path)
        assert (len(log.steps), log.finished) == (2, False)


def test_a_foreign_schema_is_refused_with_both_numbers(tmp_path):
    path = write_rank(tmp_path)
    path.write_bytes(path.read_bytes().replace(b'"schema":1', b'"schema":9'))
    assert re.search(r"line 1: schema 9, this labkit reads 1; .* run the lab again", refusal(store.read_rank, path))


def test_a_file_without_a_head_is_refused(tmp_path):
    path = write_rank(tmp_path)
    path.write_bytes(path.read_bytes().split(b"\n", 1)[1])
    assert f"{path}: no head line" in refusal(store.read_rank, path)
    path.write_bytes(b"")
    assert "no head line" in refusal(store.read_rank, path)


def test_a_file_that_is_not_there_is_named(tmp_path):
    assert f"cannot read {tmp_path / 'none.jsonl'}" in refusal(store.read_rank, tmp_path / "none.jsonl")


def test_a_run_is_read_by_rank(tmp_path):
    for rank in (1, 0, 2):
        write_rank(tmp_path, rank, 3)
    run = store.read_run(tmp_path, "variant", 1.5)
    assert ([log.head.rank for log in run.ranks], run.role, run.wall_s) == ([0, 1, 2], "variant", 1.5)


def test_the_last_attempt_counts_with_its_arrays(tmp_path):
    write_rank(tmp_path, attempt=0, steps=1, weights=[0.0])
    write_rank(tmp_path, attempt=1, steps=2, weights=[1.0])
    run = store.read_run(tmp_path, "variant", 1.0, attempts=2)
    assert (len(run.ranks[0].steps), run.arrays["weights"].tolist()) == (2, [1.0])
    assert store.read_run(tmp_path, "variant", 1.0, attempts=1).arrays["weights"].tolist() == [0.0]


@pytest.mark.parametrize(("present", "sentence"), [([0, 2], "rank 1 left no file"), ([0, 1], "files of 2 ranks")])
def test_a_rank_that_left_no_file_is_missed(tmp_path, present, sentence):
    for rank in present:
        write_rank(tmp_path, rank, 3)
    assert sentence in refusal(store.read_run, tmp_path, "variant", 1.0)


def test_a_folder_without_ranks_is_no_run(tmp_path):
    assert "is it a labkit record?" in refusal(store.read_run, tmp_path, "variant", 1.0)


def test_damaged_arrays_are_named(tmp_path):
    path = write_rank(tmp_path, weights=[1.0]).with_suffix(".npz")
    path.write_bytes(b"PK not an archive")
    assert f"{path}: " in refusal(store.read_run, tmp_path, "variant", 1.0)


def saved(folder) -> Record:
    for role, ranks in (("variant", 2), ("single", 1)):
        for rank in range(ranks):
            write_rank(folder / role, rank, ranks, weights=[0.5, ranks])
    runs = {role: store.read_run(folder / role, role, 2.5) for role in ("variant", "single")}
    made = record_of(run_of([[[], []]]))
    record = msgspec.structs.replace(made, config={"lr": 0.05, "model": "mlp"}, runs=runs, folder=folder)
    store.write_record(record)
    return record


def test_a_record_comes_back_as_it_was(tmp_path):
    record = saved(tmp_path / "record")
    for given in (record.folder, str(record.folder), record.folder / "record.json"):
        back = store.read_record(given)
        assert (back.lab, back.variant, back.config, back.folder) == (
            record.lab,
            record.variant,
            record.config,
            record.folder,
        )
        assert back.provenance == record.provenance and back.runs.keys() == record.runs.keys()
        for role, run in back.runs.items():
            assert (run.ranks, run.wall_s) == (record.runs[role].ranks, 2.5)
            assert run.arrays["weights"].tolist() == record.runs[role].arrays["weights"].tolist()


def test_a_folder_that_holds_no_record_is_named_with_what_to_give(tmp_path):
    text = refusal(store.read_record, tmp_path)
    assert str(tmp_path) in text and "Give the folder" in text


def test_rank_files_of_another_name_are_told_the_right_one(tmp_path):
    write_rank(tmp_path).rename(tmp_path / "log0.jsonl")
    text = refusal(store.read_record, tmp_path)
    assert "there is log0.jsonl" in text and 'Probe(f"my_run/rank-{rank:05d}.jsonl", rank=rank, world_size=' in text


def test_probes_that_did_not_know_their_rank_are_told_how(tmp_path):
    for rank in (0, 1):
        write_rank(tmp_path).rename(tmp_path / f"aside{rank}")
    for rank in (0, 1):
        (tmp_path / f"aside{rank}").rename(store.rank_file(tmp_path, rank))
    text = refusal(store.read_record, tmp_path)
    assert "rank-00001.jsonl says that it is of rank 0 of 1" in text
    assert "rank=rank, world_size=world_size" in text and "under torchrun" in text
    write_rank(tmp_path, rank=1, world_size=1)  # a rank alone was given
    assert "rank-00001.jsonl says that it is of rank 1 of 1" in refusal(store.read_record, tmp_path)


def test_files_that_an_older_run_left_are_named(tmp_path):
    for rank in range(4):
        write_rank(tmp_path, rank, 4)
    for rank in range(2):
        write_rank(tmp_path, rank, 2)
    text = refusal(store.read_record, tmp_path)
    assert "Delete what an older run left (rank-00002.jsonl, rank-00003.jsonl here" in text and "a new folder" in text
    for rank in (2, 3):
        store.rank_file(tmp_path, rank).unlink()
    assert store.read_record(tmp_path).run.world_size == 2


@pytest.mark.parametrize(("present", "named"), [([0, 1], "rank-00002.jsonl is missing"), ([2], "others are missing")])
def test_a_rank_without_a_file_is_named(tmp_path, present, named):
    for rank in present:
        write_rank(tmp_path, rank, 3)
    text = refusal(store.read_record, tmp_path)
    assert named in text and "of a run of 3" in text


def test_a_rank_that_wrote_nothing_is_named(tmp_path):
    write_rank(tmp_path, 0, 2)
    store.rank_file(tmp_path, 1).write_bytes(b"")
    assert "rank-00001.jsonl: no head line" in refusal(store.read_record, tmp_path)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"schema": 1}'])
def test_a_damaged_record_is_named(tmp_path, content):
    (tmp_path / "record.json").write_bytes(content)
    assert f"{tmp_path / 'record.json'}: " in refusal(store.read_record, tmp_path)


def test_a_record_of_another_schema_is_refused(tmp_path):
    path = saved(tmp_path / "record").folder / "record.json"
    path.write_text(path.read_text().replace('"schema": 1', '"schema": 2'))
    assert "schema 2, this labkit reads 1" in refusal(store.read_record, path)


def test_a_new_folder_must_be_empty(tmp_path):
    assert store.new_folder(tmp_path / "a" / "b", "x") == tmp_path / "a" / "b"
    assert store.new_folder(tmp_path / "a" / "b", "x").is_dir()  # still empty
    (tmp_path / "a" / "file").touch()
    for taken in (tmp_path / "a", tmp_path / "a" / "file"):
        assert f"{taken} is not an empty folder; give --record a new folder" in refusal(store.new_folder, taken, "x")


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").touch()
    assert "cannot make the record folder" in refusal(store.new_folder, tmp_path / "file" / "below", "x")


@pytest.fixture
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path))
    return tmp_path / "runs"


def kept(cache, name, *, complete=True, days_old=0):
    (cache / name).mkdir(parents=True)
    if complete:
        (cache / name / "record.json").touch()
    at = (cache / name).stat().st_mtime - days_old * 86400
    os.utime(cache / name, (at, at))


def test_without_a_folder_records_go_to_the_cache_each_to_its_own(cache):
    made = [store.new_folder(None, "duplicate-data-broken") for _ in range(2)]
    assert made[0] != made[1] and all(folder.parent == cache and "duplicate-data-broken" in folder.name for folder in made)


def test_the_newest_fifty_records_are_kept(cache):
    for number in range(55):
        kept(cache, f"2025{number:04d}")
    new = store.new_folder(None, "new")
    assert sorted(path.name for path in cache.iterdir()) == [f"2025{n:04d}" for n in range(6, 55)] + [new.name]


def test_a_run_that_may_still_go_on_is_not_forgotten(cache):
    kept(cache, "0-running", complete=False)
    kept(cache, "1-abandoned", complete=False, days_old=2)
    for number in range(60):
        kept(cache, f"2025{number:04d}")
    store.new_folder(None, "new")
    names = {path.name for path in cache.iterdir()}
    assert "0-running" in names and "1-abandoned" not in names


def test_the_latest_record_is_the_newest_that_is_complete(cache):
    kept(cache, "2025-1")
    kept(cache, "2025-2")
    kept(cache, "2025-3", complete=False)
    assert store.latest() == cache / "2025-2"


def test_an_empty_cache_says_how_to_make_a_record(cache):
    assert "labkit run duplicate-data" in refusal(store.latest)


def test_the_files_of_two_ranks_that_changed_places_are_noticed(tmp_path):
    paths = [write_rank(tmp_path, rank, 2) for rank in range(2)]
    first, second = (path.read_bytes() for path in paths)
    paths[0].write_bytes(second)
    paths[1].write_bytes(first)
    assert "rank 1 wrote it, and its name says rank 0" in refusal(store.read_run, tmp_path, "variant", 1.0)


def test_two_probes_on_one_file_are_noticed(tmp_path):
    path = tmp_path / "rank-00000.jsonl"
    first, second = Probe(path), Probe(path)
    for probe in (first, second):
        probe.begin_step()
        probe.end_step()
    assert "a second head; two probes wrote into this file" in refusal(store.read_rank, path)
    for probe in (first, second):
        probe.close()
    one = write_rank(tmp_path / "one")
    one.write_bytes(one.read_bytes() + one.read_bytes().splitlines(keepends=True)[1])
    assert "it comes after the end mark" in refusal(store.read_rank, one)


def test_every_rank_has_to_have_been_one_of_as_many(tmp_path):
    for rank in range(2):
        write_rank(tmp_path, rank, 2 + rank)
    assert "rank 1 was one of 3" in refusal(store.read_run, tmp_path, "variant", 1.0)


def test_a_folder_in_place_of_a_file_is_named(tmp_path):
    write_rank(tmp_path, 0, attempt=1)
    (tmp_path / "rank-00000.jsonl").mkdir()
    assert "rank-00000.jsonl: Is a directory" in refusal(store.read_run, tmp_path, "variant", 1.0, 2)


@pytest.mark.parametrize("attempts", [0, -1, 10**9])
def test_a_number_of_attempts_that_cannot_be_is_refused_at_once(tmp_path, attempts):
    path = saved(tmp_path / "record").folder / "record.json"
    path.write_text(path.read_text().replace('"attempts": 1', f'"attempts": {attempts}'))
    assert "no runs in it, or one of no attempt" in refusal(store.read_record, path)


def test_arrays_that_are_damaged_in_the_middle_are_named(tmp_path):
    path = write_rank(tmp_path, weights=list(range(1000))).with_suffix(".npz")
    whole = path.read_bytes()
    for place in range(0, len(whole), 97):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 0xFF]) + whole[place + 1 :])
        try:
            store.read_run(tmp_path, "variant", 1.0)
        except RecordError as error:
            assert str(path) in str(error)


def test_a_record_that_cannot_be_written_is_a_named_error(tmp_path):
    record = saved(tmp_path / "record")
    (record.folder / "record.json.part").mkdir()
    assert "cannot write" in refusal(store.write_record, record)


def test_kept_runs_are_listed_newest_first_and_found_by_name(tmp_path, monkeypatch):
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path))
    assert store.kept_runs() == []
    for name in ("20250101-000000-one", "20250301-000000-three", "20250201-000000-two"):
        saved(store.runs_folder() / name)
    (store.runs_folder() / "20250401-000000-running").mkdir()
    (store.runs_folder() / "20250201-000000-two" / "record.json").write_text("{")
    found = store.kept_runs()
    assert [run.folder.name for run in found] == ["20250301-000000-three", "20250101-000000-one"]
    assert (found[0].lab, found[0].variant, found[0].provenance.world_size) == ("duplicate-data", "broken", 2)
    assert store.named("last") == store.latest()
    assert store.named("20250101-000000-one") == found[1].folder
    monkeypatch.chdir(tmp_path)
    (tmp_path / "20250101-000000-one").mkdir()  # a folder of that name here is meant first
    assert store.named("20250101-000000-one") == store.Path("20250101-000000-one")
    assert store.named("nowhere") == store.Path("nowhere") and store.named(str(tmp_path)) == tmp_path


def test_a_path_that_is_too_long_is_named(tmp_path):
    path = tmp_path / ("x" * 300)
    assert "cannot make the record folder" in refusal(store.new_folder, path, "x")
    assert "no record at" in refusal(store.read_record, path)


def run_of_lab(parent, number, lab):
    folder = parent / f"2026010{number // 60}-0000{number % 60:02d}-{lab}-broken-abc{number:03d}"
    folder.mkdir(parents=True)
    (folder / "record.json").write_text(f'{{"lab": "{lab}", "more": 1}}')
    return folder


def test_a_lab_with_many_runs_loses_its_own_oldest_and_not_those_of_others(tmp_path, monkeypatch):
    from labkit.record import store

    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path))
    monkeypatch.setattr(store, "KEPT_RUNS", 8)
    few = [run_of_lab(tmp_path / "runs", number, "few") for number in range(2)]
    many = [run_of_lab(tmp_path / "runs", number, "many") for number in range(2, 12)]
    made = store.new_folder(None, "many-fixed")
    assert all(folder.exists() for folder in few), "older than all of the other lab's, and kept"
    assert [folder.exists() for folder in many] == [False] * 5 + [True] * 5
    assert len(list((tmp_path / "runs").iterdir())) == 8 and made.is_dir()


def test_what_is_said_of_a_kept_run_is_kept_beside_it_for_one_version(tmp_path):
    from labkit.record.kept import KeptVerdict, remember, remembered

    said = KeptVerdict("found", "rank-duplicates", "0.1")
    remember(tmp_path, said)
    assert remembered(tmp_path, "0.1") is None, "no record lies there"
    (tmp_path / "record.json").write_text("{}")
    remember(tmp_path, said)
    assert remembered(tmp_path, "0.1") == said and remembered(tmp_path, "0.2") is None
    (tmp_path / "verdict.json").write_text("garbage")
    assert remembered(tmp_path, "0.1") is None
