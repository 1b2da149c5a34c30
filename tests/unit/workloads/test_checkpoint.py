"""A checkpoint is whole or it is not there; what is damaged is named, and the last good one is used."""

import pickle
import re
import shutil

import msgspec
import pytest
import torch
import xxhash

from labkit.errors import CheckpointError
from labkit.workloads.checkpoint import Checkpointer
from labkit.workloads.checkpoint_files import digest_file, read_marker, write_marker


def state(step):
    return {"weights": torch.full((3, 4), float(step)), "step": step, "nested": {0: (1, None)}}


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "checkpoints"


@pytest.fixture
def kept(folder):
    """Two good checkpoints, of steps 5 and 10."""
    checkpoints = Checkpointer(folder)
    for step in (5, 10):
        checkpoints.save(step, state(step), {"rng": step})
    return checkpoints


def newest(folder):
    return folder / "step-00000010"


def reseal(folder, **changed):
    """Write a marker that states the files as they are now: damage that only a reader can notice."""
    marker = read_marker(folder)
    files = {name: digest_file(folder / name) for name in marker.files}
    write_marker(folder / "complete.json", msgspec.structs.replace(marker, files=files, **changed))


def test_what_was_saved_comes_back(kept):
    restored = kept.restore()
    assert (restored.step, restored.world_size, restored.refused) == (10, 1, ())
    assert torch.equal(restored.shared["weights"], state(10)["weights"]) and restored.shared["nested"] == {0: (1, None)}
    assert restored.own == {"rng": 10}


def test_without_any_there_is_none(folder):
    assert Checkpointer(folder).restore() is None


def test_the_newest_two_are_kept_and_nothing_else_lies_about(kept, folder):
    kept.save(15, state(15))
    assert kept.steps() == [10, 15]
    assert sorted(path.name for path in folder.iterdir()) == ["step-00000010", "step-00000015"]


def test_one_of_the_same_step_is_replaced(kept):
    kept.save(10, {"other": 1})
    assert kept.steps() == [5, 10] and kept.restore().shared == {"other": 1}


def test_one_step_can_be_asked_for(kept):
    assert kept.restore(step=5).step == 5
    assert kept.restore(step=7) is None


def test_one_in_the_background_is_of_the_state_as_it_was(folder):
    checkpoints, live = Checkpointer(folder), state(1)
    checkpoints.save_in_background(1, live)
    live["weights"].zero_()
    assert checkpoints.wait().step == 1 and checkpoints.wait() is None
    assert torch.equal(checkpoints.restore().shared["weights"], state(1)["weights"])


def test_bytes_and_times_are_told(kept):
    saved = kept.save(15, state(15))
    assert saved.num_bytes == sum(path.stat().st_size for path in saved.path.iterdir() if path.name != "complete.json")
    assert 0 < saved.stall_s == saved.write_s


# a crash


def test_a_half_written_one_is_never_read_and_is_cleared_away(kept, folder):
    left = folder / ".writing-00000015"
    shutil.copytree(newest(folder), left)
    assert kept.restore().step == 10
    kept.save(20, state(20))
    assert not left.exists()


@pytest.mark.parametrize("point", ["save", "saved"])
def test_a_crash_within_a_save_leaves_the_last_good_one(folder, point):
    class Crash(BaseException):
        pass

    def crash(reached):
        if reached == point:
            raise Crash

    Checkpointer(folder).save(5, state(5))
    with pytest.raises(Crash):
        Checkpointer(folder, reached=crash).save(10, state(10))
    assert (folder / ".writing-00000010").exists()
    assert Checkpointer(folder).restore().step == 5


# damage


@pytest.mark.parametrize("name", ["__0_0.distcp", ".metadata", "complete.json"])
@pytest.mark.parametrize("where", [0.0, 0.3, 0.5, 0.999])
def test_a_flipped_bit_anywhere_is_noticed_and_the_one_before_is_used(kept, folder, name, where):
    path = newest(folder) / name
    content = bytearray(path.read_bytes())
    content[int(where * len(content))] ^= 4
    path.write_bytes(content)
    restored = kept.restore()
    assert restored.step == 5 and str(newest(folder)) in restored.refused[0]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda path: (path / "__0_0.distcp").unlink(), "__0_0.distcp is missing"),
        (lambda path: (path / "complete.json").unlink(), "is not complete: it has no complete.json"),
        (lambda path: (path / "complete.json").write_text(""), "complete.json is damaged"),
        (lambda path: (path / "__0_0.distcp").write_bytes(b""), "has 0 bytes of .*: it was cut short"),
        (lambda path: reseal(path, schema=99), "is of version 99, this labkit reads 1"),
        (lambda path: reseal(path, step=11), "says that it is of step 11; it was renamed"),
    ],
    ids=["file gone", "marker gone", "marker empty", "cut short", "other version", "renamed"],
)
def test_what_is_wrong_is_named_and_the_one_before_is_used(kept, folder, spoil, said):
    spoil(newest(folder))
    restored = kept.restore()
    assert restored.step == 5
    assert re.search(said, restored.refused[0])


def test_where_none_is_good_nobody_starts_anew_unseen(kept, folder):
    for path in folder.iterdir():
        (path / "__0_0.distcp").write_bytes(b"x")
    with pytest.raises(CheckpointError, match=r"no checkpoint in .* can be used:\n.*step-00000010.*\n.*step-00000005"):
        kept.restore()


class Runs:
    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return (open, (str(self.path), "w"))


def test_an_index_that_names_what_could_be_run_is_refused(kept, folder, tmp_path):
    """torch's own reader would open the file: its index is a pickle."""
    (newest(folder) / ".metadata").write_bytes(pickle.dumps(Runs(tmp_path / "ran")))
    reseal(newest(folder))
    restored = kept.restore()
    assert restored.step == 5 and "open, which is no part of an index" in restored.refused[0]
    assert not (tmp_path / "ran").exists()


def test_the_marker_states_a_hash_of_itself(kept, folder):
    sealed = msgspec.json.decode((newest(folder) / "complete.json").read_bytes())
    assert sealed["xxh3"] == xxhash.xxh3_128_hexdigest(msgspec.json.encode(sealed["marker"]))


# what cannot be written


def test_a_folder_that_cannot_be_made_is_named(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(CheckpointError, match="cannot make the folder in .*file/below: Not a directory"):
        Checkpointer(tmp_path / "file" / "below")


def test_what_is_not_data_is_refused_before_anything_is_written(kept, folder):
    with pytest.raises(CheckpointError, match="state.model is a Linear"):
        kept.save(15, {"model": torch.nn.Linear(1, 1)})
    assert sorted(path.name for path in folder.iterdir()) == ["step-00000005", "step-00000010"]


def test_a_failure_in_the_background_is_raised_when_waited_for(kept, folder):
    shutil.rmtree(folder)
    kept.save_in_background(15, state(15))
    with pytest.raises(CheckpointError, match="cannot make room in .*: No such file or directory.*no good one yet"):
        kept.wait()
