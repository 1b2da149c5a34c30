"""Records as large as those of long runs, written by no run: the files that the probes of a script would have left.

python tests/benchmarks/synthetic_records.py FOLDER --ranks 8 --steps 10000 --batch 64
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

import msgspec
import numpy as np

from labkit.record.rank_files import rank_file
from labkit.record.schema import SCHEMA_VERSION, End, Event, Head

STEP_NS = 10_000_000
FETCH_NS = 2_000_000


def write_record(
    folder: Path,
    *,
    ranks: int,
    steps: int,
    batch: int,
    epochs: int = 10,
    ids: bool = False,
    split: bool = True,
    seed: int = 0,
) -> int:
    """Write the files of a run in which every rank reads `batch` samples at each of `steps` steps; return their bytes.

    Args:
        epochs: passes over the data, of equally many steps each.
        ids: whether samples have ids beside the hashes of their contents.
        split: whether ranks share each epoch's permutation out; if not, each reads all data, in an order of its own.
    """
    folder.mkdir(parents=True, exist_ok=True)
    per_epoch = steps // epochs
    num_samples = per_epoch * batch * (ranks if split else 1)
    contents = _contents(num_samples)
    encode = msgspec.json.Encoder().encode
    for rank in range(ranks):
        head = Head(
            SCHEMA_VERSION, rank, rank, ranks, "host", 1, 0, "cpu", "gloo", 1, 1000,
            {"dataset_size": num_samples, "batch_size": batch}, "one",
        )  # fmt: skip
        with rank_file(folder, rank).open("wb", buffering=2**20) as file:
            file.write(encode(head) + b"\n")
            for epoch in range(epochs):
                of_rank = _read_by(rank, ranks, num_samples, split, seed + epoch)[: per_epoch * batch]
                for line in _steps_of(of_rank.reshape(per_epoch, batch), contents, epoch, rank, ids):
                    file.write(encode(line) + b"\n")
                last = (epoch + 1) * per_epoch
                file.write(encode(Event("epoch_end", last - 1, 1000 + last * STEP_NS, {"epoch": epoch})) + b"\n")
            file.write(encode(End(epochs * per_epoch, 1000 + epochs * per_epoch * STEP_NS)) + b"\n")
    return sum(path.stat().st_size for path in folder.glob("*.jsonl"))


def _contents(num_samples: int) -> np.ndarray:
    """A 64-bit number that stands for each sample's content, different for each (splitmix64)."""
    mixed = np.arange(1, num_samples + 1, dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return mixed ^ (mixed >> np.uint64(31))


def _read_by(rank: int, ranks: int, num_samples: int, split: bool, seed: int) -> np.ndarray:
    if split:
        return np.random.default_rng(seed).permutation(num_samples)[rank::ranks]
    return np.random.default_rng([seed, rank]).permutation(num_samples)


def _steps_of(batches: np.ndarray, contents: np.ndarray, epoch: int, rank: int, ids: bool) -> Iterator[dict]:
    for number, batch in enumerate(batches, epoch * len(batches)):
        start = 1000 + number * STEP_NS + (number * 7919 + rank * 104729) % 100_000  # no two steps take quite as long
        line = {"kind": "step", "step": number, "epoch": epoch, "start_ns": start, "end_ns": start + STEP_NS - 200_000}
        line["spans"] = [["fetch", "data", start, start + FETCH_NS]]
        line["scalars"] = {"loss_local": 2.0 / (1 + number / 1000)}
        line["digests"] = {"train": contents[batch].tolist()}
        yield line | ({"ids": {"train": batch.tolist()}} if ids else {})


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__)
    asked.add_argument("folder", type=Path)
    for name, default in (("ranks", 8), ("steps", 10_000), ("batch", 64), ("epochs", 10)):
        asked.add_argument(f"--{name}", type=int, default=default)
    asked.add_argument("--ids", action="store_true")
    asked.add_argument("--unsplit", action="store_true", help="each rank shuffles all data for itself")
    given = vars(asked.parse_args())
    print(f"{write_record(given.pop('folder'), split=not given.pop('unsplit'), **given):,} bytes")


if __name__ == "__main__":
    main()
