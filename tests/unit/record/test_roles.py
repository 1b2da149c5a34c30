"""Roles are spelled as records spell them, and each has words that a person reads."""

import re
from pathlib import Path

import msgspec
import pytest

import labkit
from labkit.record.roles import Role, label_of


@pytest.mark.parametrize("role", Role)
def test_every_role_has_a_label_and_is_found_by_its_word(role):
    said = label_of(role.value, 2)
    assert said and "{" not in said
    assert Role.of(role.value) is role and msgspec.json.encode({str(role): 1}) == f'{{"{role.value}":1}}'.encode()


@pytest.mark.parametrize(
    ("role", "ranks", "said"),
    [
        ("variant", 4, "4 ranks"),
        ("variant", 1, "1 rank"),
        ("link", 2, "the link of 2 ranks"),
        ("launch-3", 2, "a launch of 2 ranks"),
        ("repeat-2", 4, "a repeat of 4 ranks"),
        ("single", 1, "one process, to compare with"),
        ("fsdp2-reshard", 4, "fsdp2-reshard, to compare with"),
        ("single-", 1, "single-, to compare with"),
        ("launch-x", 1, "launch-x, to compare with"),
    ],
)
def test_a_role_is_said_in_words(role, ranks, said):
    assert label_of(role, ranks) == said


def test_one_of_several_is_numbered_and_known_by_its_role():
    assert Role.REPEAT.numbered(2) == "repeat-2" and Role.of("repeat-2") is Role.REPEAT
    assert Role.of("repeat-x") is None and Role.of("zero1") is None and Role.of("") is None
    assert {"single": 1}[Role.SINGLE] == 1 and f"{Role.SINGLE}" == "single"


def test_the_package_asks_for_runs_by_role_and_not_by_a_word():
    bare = re.compile(r"""(?:\bruns(?:\.get\(|\[)|\brole=)["'](?!"|img")|["'] (?:not )?in \w+\.runs\b""")
    assert bare.search('record.runs["single"]') and bare.search('"x" in record.runs') and bare.search('RunPlan(role="x")')
    files = Path(labkit.__file__).parent.rglob("*.py")
    assert [f"{path.name}: {found[0]}" for path in files if (found := bare.findall(path.read_text()))] == []
