"""What is read in a script's source."""

from __future__ import annotations

import pytest

from labkit.watch.outside import written

CUTS = """\
mine = rows[rank::world_size]
mine = rows[dist.get_rank() :: dist.get_world_size()]
mine = rows[rank * n : (rank + 1) * n]
mine = data.shard(num_shards=world, index=rank)
mine = Subset(data, range(rank, len(data), world_size))
mine = rows.chunk(world_size)[rank]
mine = [row for at, row in enumerate(rows) if at % world_size == rank]
"""

NO_CUTS = """\
generator.manual_seed(seed + rank)
half = rows[::2]
first = rows[:n]
name = names[rank]
per_rank = range(0, batch, world_size)
mine = model.shard(2)
every = step % 10 == 0
path = f"{folder}/{rank}.pt"
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    def of(text):
        file = tmp_path / f"script_{abs(hash(text))}.py"
        file.write_text(text)
        monkeypatch.setattr(written, "script_files", lambda: [str(file)])
        return str(file)

    return of


@pytest.mark.parametrize("line", CUTS.splitlines())
def test_rows_that_are_cut_by_rank(script, line):
    file = script(f"import torch\n{line}\n")
    assert written.cut_by_rank() == (file, 2)


@pytest.mark.parametrize("line", NO_CUTS.splitlines())
def test_what_is_no_cut_by_rank(script, line):
    script(line)
    assert written.cut_by_rank() == ("", 0)


def test_loops_around_a_line(script):
    file = script("for epoch in range(3):\n    for batch in loader:\n        train(batch)\nfor batch in loader:\n    pass\n")
    assert written.loops_around(file, 3) == [(2, 3), (1, 3)]
    assert written.loops_around(file, 2) == [(1, 3)]  # the header of a loop is run once
    assert written.loops_around(file, 4) == []
    assert written.loops_around(script("for epoch in range(1):\n    train()\nfor fold in [0]:\n    train()\n"), 2) == []


def test_names_that_a_script_calls_and_assigns(script):
    script("sampler.set_epoch(epoch)\nself.epoch += 1\nprint(other.seed)\n")
    assert written.calls("set_epoch") and not written.calls("set_seed")
    assert written.assigns("epoch") and not written.assigns("seed")


def test_a_file_that_is_no_python_is_read_as_nothing(script):
    script("def (:\n")
    assert not written.calls("set_epoch")
