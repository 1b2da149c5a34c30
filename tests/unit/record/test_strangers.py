"""Records that somebody else wrote: regular files of bounded size, depth and width, and text that acts on nothing."""

import io
import json
import os
import re
import socket
import zipfile

import msgspec
import numpy as np
import pytest

import labkit
from labkit.errors import LabkitError, RecordError
from labkit.record import bounds, files, rank_files, store
from labkit.words import printable

from .. import script_files
from .test_store import refusal, saved, write_rank


def fifo(path):
    os.mkfifo(path)


def device(path):
    path.symlink_to("/dev/zero")


def listening(path):
    where = os.getcwd()
    os.chdir(path.parent)  # a socket's path is short
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    finally:
        os.chdir(where)


@pytest.mark.timeout(20)
@pytest.mark.parametrize("made", [fifo, device, listening])
@pytest.mark.parametrize("name", ["record.json", "variant/rank-00000.jsonl", "variant/rank-00000.npz"])
def test_what_is_no_regular_file_is_never_read(tmp_path, made, name):
    path = saved(tmp_path / "record").folder / name
    path.unlink()
    made(path)
    said = refusal(store.read_record, tmp_path / "record")
    assert f"{path}: it is a" in said and said.count("where a file was expected") == said.count("copy the whole") == 1


@pytest.mark.timeout(20)
def test_a_pipe_among_the_kept_runs_or_a_scripts_files_keeps_nobody_waiting(tmp_path, monkeypatch):
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path))
    saved(store.runs_folder() / "20250101-000000-whole")
    (store.runs_folder() / "20250102-000000-pipe").mkdir()
    fifo(store.runs_folder() / "20250102-000000-pipe" / "record.json")
    assert [run.folder.name for run in store.kept_runs()] == ["20250101-000000-whole"]
    fifo(tmp_path / "rank-00000.jsonl")
    assert refusal(store.read_record, tmp_path).startswith(f"cannot read {tmp_path / 'rank-00000.jsonl'}: it is a pipe")
    assert refusal(store.new_folder, tmp_path, "mine").startswith(f"{tmp_path} is not an empty folder")
    fifo(store.runs_folder().parent / "baseline-cpu.json")
    assert "it is a pipe" in refusal(labkit.read_baseline)


def test_a_link_to_a_file_elsewhere_is_read_and_only_what_is_echoed_must_lie_inside(tmp_path):
    path = write_rank(tmp_path / "elsewhere")
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / path.name).symlink_to(path)
    assert store.read_record(tmp_path / "mine").run.world_size == 1
    with pytest.raises(RecordError, match="is a link that leads out of"):
        files.read_regular(tmp_path / "mine" / path.name, 1000, inside=tmp_path / "mine")


@pytest.mark.parametrize("opening", ['{"kind":"event","name":"x","step":0,"time_ns":0,"more":', ""])
@pytest.mark.parametrize("bracket", ["[", '{"a":'])
def test_a_deeply_nested_line_is_named(tmp_path, opening, bracket):
    path = write_rank(tmp_path)
    path.write_text(path.read_text() + opening + bracket * 100_000 + "\n")
    assert f"{path}, line 5: " in refusal(store.read_rank, path)


@pytest.mark.parametrize("place", ["config", "more"])
def test_a_deeply_nested_record_json_is_named(tmp_path, place):
    path = saved(tmp_path / "record").folder / "record.json"
    content = json.loads(path.read_text())
    text = json.dumps({**content, place: {"a": "HERE"}}).replace('"HERE"', "[" * 100_000 + "]" * 100_000)
    path.write_text(text)
    assert f"{path}: " in refusal(store.read_record, path)


WIDE = {
    "a rank that has no file name": ("rank", 100_000),
    "a run of more ranks than there are names": ("world_size", 10**18),
    "a number of many digits": ("pid", 10**400),
    "a time whose difference to another overflows": ("barrier_ns", 2**63 - 1),
    "a fact of many digits": ("facts", {"dataset_size": 10**30}),
    "a name as long as a book": ("facts", {"x" * 10_000: 1}),
    "a text as long as a library": ("facts", {"x": "y" * 1_000_000}),
}


@pytest.mark.parametrize("what", WIDE)
def test_what_is_beyond_a_bound_is_named_by_its_line(tmp_path, what):
    path = write_rank(tmp_path)
    first, *others = path.read_text().splitlines(keepends=True)
    name, value = WIDE[what]
    path.write_text("".join([json.dumps({**json.loads(first), name: value}) + "\n", *others]))
    assert f"{path}, line 1: " in refusal(store.read_record, tmp_path)


@pytest.mark.parametrize("digest", [-1, 2**64])
def test_a_hash_that_is_no_number_of_64_bits_is_named_by_its_line(tmp_path, digest):
    path = write_rank(tmp_path)
    lines = path.read_text().splitlines(keepends=True)
    step = {**json.loads(lines[1]), "digests": {"train": [1, digest]}}
    path.write_text("".join([lines[0], json.dumps(step) + "\n", *lines[2:]]))
    assert f"{path}, line 2: " in refusal(store.read_rank, path)


def test_a_line_a_file_and_a_number_of_lines_have_their_bounds(tmp_path, monkeypatch):
    path = write_rank(tmp_path, steps=40)
    monkeypatch.setattr(rank_files, "MAX_LINES", 10)
    assert "it has more than 10 lines" in refusal(store.read_rank, path)
    monkeypatch.setattr(rank_files, "MAX_LINES", 1000)
    monkeypatch.setattr(rank_files, "MAX_LINE_BYTES", 60)
    assert f"{path}, line 1: it is longer than 60 bytes" in refusal(store.read_rank, path)
    with path.open("ab") as file:
        file.truncate(bounds.MAX_RUN_BYTES + 1)  # a hole: it takes no room
    assert f"at most {bounds.MAX_RUN_BYTES:,} are read" in refusal(store.read_rank, path)
    assert f"{bounds.MAX_RUN_BYTES:,} bytes" in refusal(store.read_run, tmp_path, "variant", 1.0)


@pytest.mark.timeout(20)
def test_a_file_of_an_attempt_far_away_is_refused(tmp_path):
    write_rank(tmp_path).rename(tmp_path / "rank-00000.attempt9999.jsonl")
    assert "a file of attempt 9,999; at most 1,000 restarts" in refusal(store.read_record, tmp_path)


@pytest.mark.parametrize("role", ["../elsewhere", "/etc", "..", "", "x" * 10_000, "a\\b"])
def test_the_name_of_a_launch_is_that_of_a_folder_in_the_record(tmp_path, role):
    path = saved(tmp_path / "record").folder / "record.json"
    content = json.loads(path.read_text())
    content["runs"][role] = content["runs"]["single"]
    path.write_text(json.dumps(content))
    said = refusal(store.read_record, path)
    assert "is the name of a launch" in said and len(said) < 1000


def archive(path, name, shape, held=b"\0" * 64, descr="<f8"):
    buffer = io.BytesIO()
    np.lib.format.write_array_header_1_0(buffer, {"shape": shape, "fortran_order": False, "descr": descr})
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as made:
        made.writestr(name, buffer.getvalue() + held)


@pytest.mark.parametrize(
    ("shape", "descr"), [((10**12,), "<f8"), ((10**9, 10**9), "<f8"), ((-1,), "<f8"), ((8,), "|O"), ((1,), "<U16")]
)
def test_an_array_is_made_only_where_its_bytes_are_there(tmp_path, shape, descr):
    path = write_rank(tmp_path).with_suffix(".npz")
    archive(path, "weights.npy", shape, descr=descr)
    assert f"{path}: " in refusal(store.read_run, tmp_path, "variant", 1.0)


def test_an_archive_of_more_bytes_or_arrays_than_a_bound_is_refused_unread(tmp_path, monkeypatch):
    path = write_rank(tmp_path).with_suffix(".npz")
    archive(path, "weights.npy", (1_000_000,), b"\0" * 8_000_000)
    assert path.stat().st_size < 100_000
    monkeypatch.setattr(rank_files, "MAX_ARRAY_BYTES", 1_000_000)
    assert "1,000,000 bytes in it" in refusal(store.read_run, tmp_path, "variant", 1.0)


ACTS = "\x1b]0;title\x07\x1b[2J\x7f\x9b31m\u202e\u200b\u2028\r\n"


def test_printable_text_has_no_character_that_acts_and_keeps_all_that_does_not():
    shown = printable(ACTS)
    assert shown.isprintable() and shown.startswith("␛]0;title␇␛[2J␡\\u009b31m\\u202e\\u200b\\u2028␍␊")
    plain = "Größe × 3, 重み, [red] <b> $x$ \u00a0."
    assert printable(plain) == plain
    assert printable("a\n\tb\r", keep="\n\t") == "a\n\tb␍"
    assert printable("abcdef", most=4) == "abc…" and printable("abcd", most=4) == "abcd"


def strings(value) -> list[str]:
    """Every text in a tree, names included."""
    if isinstance(value, dict):
        return [text for pair in value.items() for part in pair for text in strings(part)]
    if isinstance(value, (list, tuple)):
        return [text for part in value for text in strings(part)]
    return [value] if isinstance(value, str) else []


def test_every_text_of_a_record_may_be_shown(tmp_path):
    folder = script_files.write(tmp_path / f"run {ACTS[:9]}", "reads and loss", **{ACTS: ACTS})
    record = store.read_record(folder)
    back = msgspec.to_builtins(record, enc_hook=str)
    back.pop("folder")
    assert printable(ACTS) in strings(back) and all(text.isprintable() for text in strings(back))
    path = saved(tmp_path / "record").folder / "record.json"
    content = json.loads(path.read_text())
    path.write_text(json.dumps({**content, "lab": ACTS, "variant": ACTS, "config": {ACTS: ACTS}}))
    assert store.read_record(path).config == {printable(ACTS): printable(ACTS)}


def test_an_error_shows_what_it_quotes_as_text(tmp_path):
    path = write_rank(tmp_path / f"run {ACTS}")
    path.write_text(path.read_text().replace('"kind":"step"', json.dumps("kind") + ":" + json.dumps(ACTS), 1))
    for error in (refusal(store.read_rank, path), str(LabkitError(ACTS)), str(labkit.RankFailed(ACTS, {}))):
        assert re.sub(r"[\n\t]", "", error).isprintable() and "␛" in error
