"""Long files are kept as columns: the same log as from the lines, and lines that stay the truth."""

from pathlib import Path

import numpy as np
import pytest

from labkit.errors import RecordError
from labkit.record import compact, rank_files
from labkit.record.columns import Keys, samples_of
from labkit.record.probe import Probe
from labkit.record.schema import RankLog


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch) -> Path:
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache" / "columns"


@pytest.fixture
def file(tmp_path) -> Path:
    """A rank's file with all kinds of lines, samples under two names, and ids of some of them."""
    (tmp_path / "record").mkdir()
    path = tmp_path / "record" / "rank-00000.jsonl"
    with Probe(path, rank=0, world_size=1) as probe:
        probe.declare(dataset_size=12)
        for number in range(6):
            probe.begin_step(epoch=number // 3)
            with probe.span("forward"):
                probe.samples("train", np.arange(number, number + 4).reshape(4, 1), list(range(number, number + 4)))
            if number % 2:
                probe.samples("other", np.arange(2).reshape(2, 1))
            probe.scalar("loss_local", float("nan") if number == 2 else 0.5)
            probe.series("bytes", [1, 2])
            probe.end_step()
        probe.begin_step(epoch=2)
        probe.end_step()
        probe.seen("validation", 0, np.arange(3).reshape(3, 1), [7, 8, 9])
        probe.event("epoch_end", epoch=1)
        probe.digest("weights", [])
    return path


def from_lines(path: Path, monkeypatch) -> RankLog:
    with monkeypatch.context() as patch:
        patch.setattr(compact, "FROM_BYTES", 2**60)
        return rank_files.read_rank(path)


@pytest.fixture
def long(monkeypatch) -> None:
    monkeypatch.setattr(compact, "FROM_BYTES", 0)


def no_lines(*_: object) -> object:
    raise AssertionError("the lines are decoded again")


@pytest.mark.usefixtures("long")
@pytest.mark.parametrize("times", [1, 2])
def test_columns_say_what_the_lines_say(file, times, monkeypatch):
    expected = from_lines(file, monkeypatch)
    for _ in range(times):
        log = rank_files.read_rank(file)
    assert log == expected and log.finished
    assert [name for name in log.steps[1].digests] == ["train", "other"] and log.steps[6].digests == {}
    for name in ("train", "other"):
        own, others = samples_of(log.steps, name), samples_of(expected.steps, name)
        for field in ("epoch", "loader", "starts", "digests", "id_starts", "ids", "has_ids"):
            assert np.array_equal(getattr(own, field), getattr(others, field)), field
    assert log.seen[0].ids == [7, 8, 9] and isinstance(log.seen[0].digests, Keys)


@pytest.mark.usefixtures("long")
def test_the_second_time_no_line_is_decoded(file, monkeypatch):
    first = rank_files.read_rank(file)
    monkeypatch.setattr(rank_files, "_checked_lines", no_lines)
    assert rank_files.read_rank(file) == first
    assert not isinstance(samples_of(first.steps, "train").digests.base, type(None)), "mapped, not copied"


@pytest.mark.usefixtures("long")
def test_a_file_that_was_written_to_is_read_again(file, monkeypatch):
    lines = file.read_bytes().splitlines(keepends=True)
    file.write_bytes(b"".join(lines[:4]) + lines[4][:20])  # killed in its fourth step
    log = rank_files.read_rank(file)
    assert len(log.steps) == 3 and not log.finished
    file.write_bytes(b"".join(lines))
    assert rank_files.read_rank(file) == from_lines(file, monkeypatch) != log


def spoilt(data: bytes) -> dict[str, bytes]:
    import pyarrow as pa

    sink = pa.BufferOutputStream()
    batch = pa.record_batch({"line": pa.array(["x"])})
    with pa.ipc.new_file(sink, batch.schema) as writer:
        writer.write_batch(batch)
    cuts = {f"cut to {share:.0%}": data[: int(share * len(data))] for share in (0.0, 0.3, 0.7, 0.99)}
    return cuts | {"text": b"no columns", "another file of columns": sink.getvalue().to_pybytes(), "zeros": bytes(len(data))}


@pytest.mark.usefixtures("long")
def test_what_is_wrong_with_columns_is_mended(file, cache, monkeypatch):
    whole = rank_files.read_rank(file)
    (kept,) = cache.glob("*.arrow")
    for what, data in spoilt(kept.read_bytes()).items():
        kept.unlink()
        kept.write_bytes(data)
        assert rank_files.read_rank(file) == whole, what
        with monkeypatch.context() as patch:
            patch.setattr(rank_files, "_checked_lines", no_lines)
            assert rank_files.read_rank(file) == whole, what


@pytest.mark.usefixtures("long")
def test_columns_of_another_file_are_not_believed(file, cache, tmp_path, monkeypatch):
    whole = rank_files.read_rank(file)
    (kept,) = cache.glob("*.arrow")
    other = tmp_path / "rank-00000.jsonl"
    other.write_bytes(file.read_bytes().replace(b'"dataset_size":12', b'"dataset_size":13'))
    rank_files.read_rank(other)
    (of_other,) = set(cache.glob("*.arrow")) - {kept}
    of_other.replace(kept)  # not written over: `whole` is mapped from it
    assert rank_files.read_rank(file) == whole


@pytest.mark.usefixtures("long")
def test_a_record_that_cannot_be_written_to_is_left_as_it_is(file, cache):
    before = {path: path.stat().st_mtime_ns for path in file.parent.iterdir()}
    rank_files.read_rank(file)
    assert {path: path.stat().st_mtime_ns for path in file.parent.iterdir()} == before
    assert len(list(cache.iterdir())) == 1 and cache.stat().st_mode & 0o077 == 0


@pytest.mark.usefixtures("long")
def test_without_a_cache_it_is_read_into_memory(file, tmp_path, monkeypatch):
    (tmp_path / "cache").write_text("a file where the cache would be")
    assert rank_files.read_rank(file) == from_lines(file, monkeypatch)


@pytest.mark.usefixtures("long")
def test_a_full_disk_is_no_reason_not_to_read(file, cache, monkeypatch):
    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compact._Staged, "_write", full)
    assert rank_files.read_rank(file) == from_lines(file, monkeypatch) and not list(cache.iterdir())


@pytest.mark.usefixtures("long")
@pytest.mark.parametrize("hash_", [b"-1", b'"1"', b"18446744073709551616"])
def test_a_broken_line_is_named_and_nothing_is_kept(file, cache, hash_):
    lines = file.read_bytes().splitlines(keepends=True)
    lines[3] = b'{"kind":"step","step":2,"epoch":0,"start_ns":1,"end_ns":2,"digests":{"train":[' + hash_ + b"]}}\n"
    file.write_bytes(b"".join(lines))
    with pytest.raises(RecordError, match=r"rank-00000\.jsonl, line 4: "):
        rank_files.read_rank(file)
    assert not list(cache.iterdir())


@pytest.mark.usefixtures("long")
def test_very_many_names_are_read_into_memory(tmp_path, cache, monkeypatch):
    path = tmp_path / "rank-00000.jsonl"
    with Probe(path, rank=0, world_size=1) as probe:
        for number in range(40):
            probe.begin_step()
            probe.samples(f"name {number}", np.arange(2).reshape(2, 1))
    assert rank_files.read_rank(path) == from_lines(path, monkeypatch) and not list(cache.iterdir())


@pytest.mark.usefixtures("long")
def test_the_columns_used_longest_ago_are_forgotten(file, cache, tmp_path, monkeypatch):
    monkeypatch.setattr(compact, "MOST_BYTES", 1)
    rank_files.read_rank(file)
    other = tmp_path / "rank-00000.jsonl"
    other.write_bytes(file.read_bytes())
    log = rank_files.read_rank(other)
    assert len(list(cache.iterdir())) == 1 and log.steps[0].digests["train"]


def test_a_short_file_needs_no_columns(file, cache):
    assert rank_files.read_rank(file).finished and not cache.exists()
