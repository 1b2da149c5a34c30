"""Ways in which a record's files come to be other than they were written: by chance, from bytes to bytes."""

from __future__ import annotations

import json
import random
from pathlib import Path

import msgspec
import numpy as np

from labkit.record.schema import Digest, End, Record
from labkit.record.store import rank_file, write_record

Files = dict[str, bytes]


def files_of(record: Record, folder: Path) -> Files:
    """A record made of plain numbers as the files that ranks would have left, by their path in its folder."""
    encode = msgspec.json.Encoder().encode
    folder.mkdir(parents=True)
    for role, run in record.runs.items():
        (folder / role).mkdir()
        for attempt, logs in enumerate([*run.earlier, run.ranks]):
            for log in logs:
                digests = [Digest(name, value) for name, value in log.digests.items()]
                ended = [End(len(log.steps), 0)] if logs is run.ranks else []
                lines = [log.head, *log.events, *log.steps, *log.seen, *digests, *ended]
                path = rank_file(folder / role, log.head.rank, attempt)
                path.write_bytes(b"".join(encode(line) + b"\n" for line in lines))
        if run.arrays:
            np.savez(rank_file(folder / role, 0, run.attempts - 1).with_suffix(".npz"), **run.arrays)
    write_record(msgspec.structs.replace(record, folder=folder))
    return {path.relative_to(folder).as_posix(): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def flip_bytes(data: bytes, chance: random.Random) -> bytes:
    changed = bytearray(data)
    for _ in range(chance.randint(1, 8)):
        if changed:
            changed[chance.randrange(len(changed))] ^= 1 << chance.randrange(8)
    return bytes(changed)


def cut_off(data: bytes, chance: random.Random) -> bytes:
    return data[: chance.randrange(len(data) + 1)]


def cut_out(data: bytes, chance: random.Random) -> bytes:
    begin, end = sorted(chance.randrange(len(data) + 1) for _ in range(2))
    return data[:begin] + data[end:]


def on_lines(change):
    def mutate(data: bytes, chance: random.Random) -> bytes:
        lines = data.split(b"\n")
        change(lines, chance.randrange(len(lines)), chance)
        return b"\n".join(lines)

    mutate.__name__ = change.__name__
    return mutate


@on_lines
def swap_lines(lines, at, chance):
    other = chance.randrange(len(lines))
    lines[at], lines[other] = lines[other], lines[at]


@on_lines
def delete_lines(lines, at, chance):
    del lines[at : at + chance.randint(1, 5)]


@on_lines
def double_a_line(lines, at, chance):
    lines.insert(at, lines[at])


@on_lines
def nest(lines, at, chance):
    depth = chance.choice([5, 100, 20_000])
    lines[at] = lines[at][:-1] + b',"more":' + b"[" * depth + (b"]" * depth if chance.random() < 0.5 else b"") + b"}"


VALUES = (
    *(None, True, False, 0, -1, 1, 2, 3.5, -2.5, 2**31, 2**53, 2**63 - 1, -(2**63), 2**63, 2**64, 10**30, 10**400),
    *(1e308, -1e308, 1e-320, "", "x", "nan", "inf", "\x1b[2J", "<b>", "$\\frac$", "../x", "é\u202e", "[red]", "y" * 5000),
    *([], [1], [[]], {}, {"a": 1}, [0] * 300),
)


def on_trees(change):
    """Mutate JSON: a line of several, or the whole of a file that is one object."""

    def mutate(data: bytes, chance: random.Random) -> bytes:
        lines = data.split(b"\n")
        whole = len(lines) > 1 and lines[0] == b"{"
        at = chance.randrange(len(lines))
        try:
            tree = json.loads(data if whole else lines[at])
        except (ValueError, RecursionError):
            return flip_bytes(data, chance)  # not JSON any more, or nested deeply
        places = list(_places(tree))
        if not places:
            return data
        for _ in range(chance.randint(1, 2)):
            change(*chance.choice(places), chance)
        try:
            text = json.dumps(tree).encode()
        except (ValueError, RecursionError):
            return data
        return text if whole else b"\n".join([*lines[:at], text, *lines[at + 1 :]])

    mutate.__name__ = change.__name__
    return mutate


def _places(tree):
    for key in list(tree) if isinstance(tree, dict) else range(len(tree)) if isinstance(tree, list) else ():
        yield tree, key
        yield from _places(tree[key])


@on_trees
def another_value(holder, key, chance):
    holder[key] = chance.choice(VALUES)


@on_trees
def another_number(holder, key, chance):
    if key in holder if isinstance(holder, dict) else key < len(holder):
        value = holder[key]
        if isinstance(value, (int, float)) and not isinstance(value, bool):
            holder[key] = chance.choice(
                [value + 1, value - 1, -value, 0, value * 1000, value + 0.5, value // 2, 10 * value + 7]
            )


@on_trees
def another_key(holder, key, chance):
    if isinstance(holder, dict) and key in holder:
        holder[chance.choice(["x", "", "step", "rank", "\x1b]0;t\x07", key + "s", "k" * 2000])] = holder.pop(key)


@on_trees
def no_key(holder, key, chance):
    if isinstance(holder, dict):
        holder.pop(key, None)
    elif key < len(holder):
        del holder[key]


ON_A_FILE = (
    *(flip_bytes, cut_off, cut_out, swap_lines, delete_lines, double_a_line, nest),
    *(another_value, another_value, another_value, another_number, another_number, another_key, no_key, no_key),
)


def mutated(files: Files, chance: random.Random) -> tuple[Files, str]:
    """One to three changes, and what they are: a file changed, left out, or taken for another."""
    files, said = dict(files), []
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        name = chance.choice(sorted(files))
        other = chance.choice(sorted(files))
        kind = chance.random()
        if kind < 0.04 and len(files) > 1:
            del files[name]
            said.append(f"{name} left out")
        elif kind < 0.08:
            files[name], files[other] = files[other], files[name]
            said.append(f"{name} for {other}")
        else:
            change = chance.choice(ON_A_FILE if not name.endswith(".npz") else (flip_bytes, cut_off, cut_out))
            files[name] = change(files[name], chance)
            said.append(f"{change.__name__} in {name}")
    return files, "; ".join(said)
