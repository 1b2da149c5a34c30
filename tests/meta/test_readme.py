"""What the README says is executed: its commands, its example, its picture."""

import re
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from labkit import labs

ROOT = Path(__file__).resolve().parents[2]
README = (ROOT / "README.md").read_text()
SLOW = ("make ", "conda ")


def commands() -> list[str]:
    """The README's shell commands: indented lines, without their comments."""
    without_blocks = re.sub(r"(?s)```.*?```", "", README)
    lines = re.findall(r"(?m)^    (\S.*)$", without_blocks)
    return [line.split("  #")[0].strip() for line in lines if not line.startswith("config ──")]


def run(command: str, tmp_path: Path) -> subprocess.CompletedProcess:
    words = shlex.split(command)
    assert words[0].startswith(".venv/bin/")
    tool = words[0].removeprefix(".venv/bin/")
    module = {"labkit": "labkit", "torchrun": "torch.distributed.run"}[tool]
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LABKIT_CACHE": str(tmp_path), "PYTHONPATH": str(ROOT)}
    rest = words[1:] if tool == "labkit" else ["--rdzv-backend=c10d", "--rdzv-endpoint=127.0.0.1:0", *words[1:]]
    return subprocess.run([sys.executable, "-m", module, *rest], capture_output=True, text=True, env=env, cwd=tmp_path)


@pytest.mark.ranks
def test_every_labkit_command_of_the_readme_runs(tmp_path):
    found = [command for command in commands() if not command.startswith(SLOW)]
    assert len(found) >= 7
    for command in found:
        done = run(command, tmp_path)
        expected = 1 if "--fail-on found" in command else 0
        assert done.returncode == expected, f"{command}\n{done.stdout}\n{done.stderr}"


def test_every_make_target_of_the_readme_exists():
    makefile = (ROOT / "Makefile").read_text()
    named = {command.split()[1] for command in commands() if command.startswith("make ")}
    assert named >= {"lab", "test"}
    for target in named:
        assert re.search(rf"(?m)^{target}:", makefile), target


@pytest.mark.ranks
def test_the_example_of_the_readme_finds_the_duplicate_data(tmp_path):
    example = re.search(r"## Five lines\n\n```python\n(.*?)```", README, re.DOTALL)
    assert example
    script = tmp_path / "example.py"
    script.write_text(example[1])
    env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "LABKIT_CACHE": str(tmp_path), "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, env=env, check=True)
    assert "FOUND  rank-duplicates" in done.stdout


def test_the_symptom_table_comes_first_and_sends_to_every_lab_and_to_variants_that_exist():
    rows = [line.split("|")[-2] for line in README.split("## Start")[0].splitlines() if line.startswith("| ")][1:]
    sent = {}
    for row in rows:
        slug, *variants = re.findall(r"`([^`]+)`", row)
        sent.setdefault(slug, set()).update(variants)
    for spec in labs.specs():
        if spec.variants:
            assert sent.get(spec.slug, set()) <= {variant.name for variant in spec.variants} - {"fixed"}
            assert "broken" in sent.get(spec.slug, set()), spec.slug


def test_the_pictures_of_the_readme_are_there():
    for path in re.findall(r"!\[[^\]]+\]\(([^)]+)\)", README):
        assert (ROOT / path).is_file(), path


def test_the_exit_codes_of_the_readme_are_those_of_the_command_line():
    from labkit import cli

    line = next(line for line in README.splitlines() if line.startswith("Exit codes"))
    assert f"{cli.EXIT_FAILED_CHECK} a `--fail-on`" in line
    assert f"{cli.EXIT_WRONG_USE} wrong use" in line
    assert f"{cli.EXIT_PROGRAM_FAILED} the program" in line
