"""scripts/setup.sh, really run, on a path where python and pip are stubs: nothing is downloaded, nothing takes long.

The stub interpreter answers what the script asks (its version, whether venv is there), makes a .venv that holds a copy
of itself, and writes down what pip was asked to install.
"""

import os
import shutil
import subprocess
import time
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TOOLS = ["awk", "cat", "cksum", "cp", "df", "dirname", "grep", "mkdir", "rm", "sed", "sh", "tail"]

STUB_PYTHON = """#!/bin/sh
case "$*" in
*"import sys, pip"*) exit "${STUB_UNSOUND:-0}" ;;
*version_info*) echo "${STUB_VERSION:-3.12.4}" ;;
*ensurepip*) exit "${STUB_NO_VENV:-0}" ;;
"-m venv"*)
    echo "venv $*" >>"$STUB_CALLS"
    rm -rf .venv && mkdir -p .venv/bin && cp "$0" .venv/bin/python && echo "#!$PWD/.venv/bin/python" >.venv/bin/pip ;;
"-m pip install"*)
    echo "pip $*" >>"$STUB_CALLS"
    echo "${STUB_PIP_SAYS:-Successfully installed everything}"
    if [ -n "${STUB_INTERRUPT:-}" ]; then kill -TERM "$PPID"; fi
    exit "${STUB_PIP_STATUS:-0}" ;;
*"import torch"*) exit "${STUB_NO_TORCH:-0}" ;;
esac
"""


class Sandbox:
    """A copy of the files that the script reads, with a path of its own."""

    def __init__(self, folder: Path):
        self.folder, self.bin, self.calls_file = folder / "a project", folder / "bin", folder / "calls"
        (self.folder / "scripts").mkdir(parents=True)
        self.bin.mkdir()
        for name in ("scripts/setup.sh", "pyproject.toml", "constraints.txt"):
            shutil.copy(ROOT / name, self.folder / name)
        for tool in TOOLS:
            (self.bin / tool).symlink_to(shutil.which(tool) or tool)
        self.command("python3.12", STUB_PYTHON)
        self.command("uname", 'echo "${STUB_UNAME:-Linux x86_64}"')

    def command(self, name: str, text: str) -> None:
        path = self.bin / name
        path.write_text(text if text.startswith("#!") else f"#!/bin/sh\n{text}\n")
        path.chmod(0o755)

    def setup(self, *extras: str, **variables: str) -> subprocess.CompletedProcess:
        environment = {
            "PATH": str(self.bin),
            "STUB_CALLS": str(self.calls_file),
            "LABKIT_MIN_FREE_MB": "0",
            "LC_ALL": "C",
        } | variables
        command = [str(self.folder / "scripts" / "setup.sh"), *extras]
        return subprocess.run(
            command, env=environment, cwd="/", stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=20
        )

    @property
    def calls(self) -> list[str]:
        return self.calls_file.read_text().splitlines() if self.calls_file.exists() else []


@pytest.fixture
def sandbox(tmp_path: Path) -> Sandbox:
    return Sandbox(tmp_path)


def assert_stopped(result: subprocess.CompletedProcess, *words: str) -> None:
    """It failed, with all these words in at most two lines of its own, and left no complaint of the shell."""
    assert result.returncode == 1, result
    message = [line for line in result.stderr.splitlines() if not line.startswith("  | ")]
    assert 1 <= len(message) <= 2 and all(line.startswith("labkit: ") for line in message), message
    for word in words:
        assert word in "\n".join(message)


def test_the_first_call_installs_at_the_pinned_versions_and_the_second_does_nothing(sandbox):
    first = sandbox.setup()
    assert (first.returncode, first.stderr) == (0, "")
    assert sandbox.calls == [
        "venv -m venv --clear .venv",
        "pip -m pip install --no-input --disable-pip-version-check -c constraints.txt -e .[dev]",
    ]
    second = sandbox.setup()
    assert (second.returncode, second.stdout, second.stderr, len(sandbox.calls)) == (0, "", "", 2)


@pytest.mark.parametrize("name", ["pyproject.toml", "constraints.txt"])
def test_a_changed_file_installs_again_into_the_same_environment_and_an_old_date_does_not(sandbox, name):
    sandbox.setup()
    os.utime(sandbox.folder / name, (time.time() + 60,) * 2)
    sandbox.setup()
    assert len(sandbox.calls) == 2
    with open(sandbox.folder / name, "a") as file:
        file.write("\n")
    assert sandbox.setup().returncode == 0
    assert [call.split()[0] for call in sandbox.calls] == ["venv", "pip", "pip"]


def test_an_extra_is_installed_beside_dev_and_once(sandbox):
    sandbox.setup()
    sandbox.setup("bench")
    sandbox.setup("bench")
    sandbox.setup()
    assert [call.split()[-1] for call in sandbox.calls[1:]] == [".[dev]", ".[dev,bench]"]


def test_a_project_that_was_moved_gets_a_new_environment(sandbox):
    sandbox.setup()
    sandbox.folder = sandbox.folder.rename(sandbox.folder.with_name("moved"))
    sandbox.setup()
    assert [call.split()[0] for call in sandbox.calls] == ["venv", "pip", "venv", "pip"]


def test_a_broken_environment_is_made_anew(sandbox):
    sandbox.setup(STUB_PIP_STATUS="1")
    sandbox.setup(STUB_UNSOUND="1")
    assert [call.split()[0] for call in sandbox.calls] == ["venv", "pip", "venv", "pip"]


def test_a_failed_install_leaves_no_stamp_and_the_next_call_resumes(sandbox):
    assert sandbox.setup(STUB_PIP_STATUS="1").returncode == 1
    assert sandbox.setup().returncode == 0
    assert [call.split()[0] for call in sandbox.calls] == ["venv", "pip", "pip"]


def test_a_failed_update_leaves_no_stamp_even_when_the_change_is_taken_back(sandbox):
    sandbox.setup()
    constraints = sandbox.folder / "constraints.txt"
    before = constraints.read_text()
    constraints.write_text(before + "x==1\n")
    sandbox.setup(STUB_PIP_STATUS="1")
    constraints.write_text(before)
    sandbox.setup()
    assert len(sandbox.calls) == 4


def test_an_interrupted_install_says_so_and_the_next_call_resumes(sandbox):
    assert_stopped(sandbox.setup(STUB_INTERRUPT="yes"), "interrupted", "resumes")
    assert sandbox.setup().returncode == 0
    assert len(sandbox.calls) == 3


def test_an_old_python_is_named_with_where_to_get_another(sandbox):
    (sandbox.bin / "python3.12").rename(sandbox.bin / "python3")
    result = sandbox.setup(STUB_VERSION="3.10.13")
    assert_stopped(result, "Python 3.11 or later", "python3 is 3.10.13", "python.org/downloads", "brew", "apt")


def test_no_python_at_all_is_said(sandbox):
    (sandbox.bin / "python3.12").unlink()
    assert_stopped(sandbox.setup(), "found: no Python at all")


def test_a_command_that_only_says_not_installed_is_passed_over(sandbox):
    sandbox.command("python3.13", "echo 'not installed' >&2; exit 127")
    assert "with python3.12 (3.12.4)" in sandbox.setup().stdout


def test_the_python_asked_for_comes_first(sandbox):
    sandbox.command("my-python", STUB_PYTHON)
    assert "with my-python (3.12.4)" in sandbox.setup(PYTHON="my-python").stdout


def test_a_python_asked_for_that_is_too_old_is_passed_over_aloud(sandbox):
    sandbox.command("my-python", "echo 2.7.18")
    assert "PYTHON=my-python does not run or is too old; taking python3.12" in sandbox.setup(PYTHON="my-python").stdout


def test_a_missing_venv_module_is_named_with_its_debian_package(sandbox):
    assert_stopped(sandbox.setup(STUB_NO_VENV="1"), "no venv module", "sudo apt install python3.12-venv")


def test_too_little_disk_space_is_said_with_folder_and_amounts(sandbox):
    result = sandbox.setup(LABKIT_MIN_FREE_MB="999999999")
    assert_stopped(result, str(sandbox.folder), "MB free, 999999999 MB needed")
    assert sandbox.calls == []


def test_three_gigabytes_are_needed_unless_told_otherwise(sandbox):
    sandbox.command("df", "echo Filesystem 1024-blocks; echo map auto home 9999999 1 3145727 1% /a volume")
    assert_stopped(sandbox.setup(LABKIT_MIN_FREE_MB=""), "3071 MB free, 3072 MB needed")
    sandbox.command("df", "echo Filesystem 1024-blocks; echo map auto home 9999999 1 3145728 1% /a volume")
    assert sandbox.setup(LABKIT_MIN_FREE_MB="").returncode == 0


@pytest.mark.parametrize(
    "words",
    [
        "WARNING: Retrying (Retry(total=4)) after connection broken by 'NewConnectionError(...)'",
        "ERROR: HTTP error 403 while getting https://example.org/torch.whl",
        "ReadTimeoutError: Read timed out.",
    ],
)
def test_an_index_out_of_reach_is_said_with_the_settings_for_a_proxy_and_the_last_lines(sandbox, words):
    result = sandbox.setup(STUB_PIP_STATUS="1", STUB_PIP_SAYS=words)
    assert_stopped(result, "could not reach the package index", "PIP_PROXY", "PIP_INDEX_URL", ".venv/setup.log")
    assert f"  | {words}" in result.stderr
    assert (sandbox.folder / ".venv" / "setup.log").read_text() == f"{words}\n"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("ERROR: No matching distribution found for torch==2.13.0", "no build of a package for this Python"),
        ("OSError: [Errno 28] No space left on device", "the disk is full"),
        ("ERROR: Failed to build installable wheels", "pip failed, though it reached the package index"),
    ],
)
def test_other_failures_of_pip_do_not_blame_the_network(sandbox, words, message):
    result = sandbox.setup(STUB_PIP_STATUS="1", STUB_PIP_SAYS=words)
    assert_stopped(result, message, ".venv/setup.log")
    assert f"  | {words}" in result.stderr


def test_an_installation_that_cannot_be_imported_is_not_ready(sandbox):
    assert_stopped(sandbox.setup(STUB_NO_TORCH="1"), "cannot be imported", ".venv/setup.log")
    sandbox.setup()
    assert len(sandbox.calls) == 3


@pytest.mark.parametrize("system", ["MINGW64_NT-10.0 x86_64", "MSYS_NT-10.0 x86_64", "CYGWIN_NT-10.0 x86_64"])
def test_windows_without_wsl_is_sent_to_wsl(sandbox, system):
    assert_stopped(sandbox.setup(STUB_UNAME=system), "wsl --install")


def test_an_intel_mac_is_told_that_torch_has_no_build_for_it_and_an_apple_one_goes_on(sandbox):
    assert_stopped(sandbox.setup(STUB_UNAME="Darwin x86_64"), "Intel Macs")
    assert sandbox.setup(STUB_UNAME="Darwin arm64").returncode == 0
