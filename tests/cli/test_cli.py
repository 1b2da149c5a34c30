"""The command line: what it prints, where, and how it ends."""

import dataclasses
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import psutil
import pytest
from command_line import labkit

from labkit import cli, labs
from labkit.doctor.diagnosis import Diagnosis
from labkit.doctor.launch import Ended

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(autouse=True)
def own_cache(tmp_path, monkeypatch):
    monkeypatch.setenv("LABKIT_CACHE", str(tmp_path / "cache"))


def process(*words, **kwargs) -> subprocess.CompletedProcess:
    """Run `labkit` as a process of its own."""
    return subprocess.run([sys.executable, "-m", "labkit", *map(str, words)], capture_output=True, text=True,
                          cwd=ROOT, **kwargs)  # fmt: skip


def wrong_use(capsys, monkeypatch, *words) -> str:
    """Run in this process, expect exit code 2 and nothing on standard output; give the message."""
    monkeypatch.setattr(sys, "argv", ["labkit", *words])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    printed = capsys.readouterr()
    assert ended.value.code == 2, printed
    assert printed.out == ""
    return printed.err


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        (["explain", "rank-duplicate"], ["no question and no reason 'rank-duplicate'", "rank-duplicates"]),
        (["explain", "order/ranks-identical"], ["no reason of order", "rank-duplicates/ranks-identical"]),
        (["run", "duplicat-data"], ["no lab 'duplicat-data'", "duplicate-data", "Did you mean 'duplicate-data'?"]),
        (["run", "duplicate-data", "--variant", "fixd"], ["'fixd'", "no-set-epoch", "Did you mean 'fixed'?"]),
        (["run", "duplicate-data", "--ranks", "four"], ["--ranks must be a whole number", "'four'"]),
        (["run", "duplicate-data", "--ranks", "0"], ["ranks must be a whole number from 1 to", "given 0"]),
        (["run", "duplicate-data", "--ranks", "-3"], ["given -3"]),
        (["run", "duplicate-data", "--ranks", "100000"], ["given 100000"]),
        (["run", "duplicate-data", "--set", "bach=3"], ["no setting 'bach'", "Did you mean 'batch'?"]),
        (["run", "duplicate-data", "--set", "batch"], ["KEY=VALUE", "'batch'"]),
        (["run", "duplicate-data", "--set", "batch=three"], ["batch must be a whole number; given 'three'"]),
        (["run", "duplicate-data", "--set", "batch=0"], ["batch must be from 1 to 1797; given 0"]),
        (["run", "duplicate-data", "--set", "lr=nan"], ["lr must be a number; given 'nan'"]),
        (["run", "duplicate-data", "--set", "model=resnet"], ["no model 'resnet'", "cnn, mlp"]),
        (["run", "duplicate-data", "--steps", "-1"], ["steps must be from 0 to", "given -1"]),
        (["run", "duplicate-data", "--epochs", "1.5"], ["--epochs must be a whole number; given '1.5'"]),
        (["run", "duplicate-data", "--seed", "-1"], ["seed must be a whole number from 0", "given -1"]),
        (["run", "duplicate-data", "--deadline", "0"], ["the deadline must be above 0 seconds", "given 0"]),
        (["run", "duplicate-data", "--deadline", "soon"], ["--deadline must be a number; given 'soon'", "run --help"]),
        (["run", "duplicate-data", "--deadline", "inf"], ["the deadline must be above 0 seconds", "given inf"]),
        (["run", "duplicate-data", "--device", "tpu"], ["no device 'tpu'", "cpu, cuda"]),
        (["run", "duplicate-data", "--backend", "mpi"], ["no backend 'mpi'", "gloo, nccl"]),
        (["run", "duplicate-data", "--backend", "nccl", "--device", "cpu"], ["nccl", "--backend gloo"]),
        (["run", "duplicate-data", "--hosts", "two"], ["--hosts must be a whole number", "'two'"]),
        (["run", "duplicate-data", "--hosts", "0"], ["hosts must be a whole number from 1 to", "given 0"]),
        (["run", "duplicate-data", "--hosts", "5"], ["5 hosts for 4 ranks", "at least as many ranks as hosts"]),
        (["run", "duplicate-data", "--hosts", "2", "--link", "fast"], ["as in 400mbit", "'fast'"]),
        (["run", "duplicate-data", "--hosts", "2", "--link", "1kbit"], ["from 1 Mbit/s to 400 Gbit/s"]),
        (["run", "duplicate-data", "--link", "400mbit"], ["a link joins two hosts or more", "--hosts 2"]),
        (["run", "duplicate-data", "--hosts", "2", "--latency", "soon"], ["--latency must be a number", "'soon'"]),
        (["run", "duplicate-data", "--hosts", "2", "--latency", "-1"], ["latency must be from 0", "given -1"]),
        (["run", "duplicate-data", "--hosts", "2", "--emulate-link"], ["--link 400mbit"]),
        (["run", "duplicate-data", "--fail-on", "fund"], ["no status 'fund'", "Did you mean 'found'?"]),
        (["run", "duplicate-data", "--json", "no/such/folder/x.json"], ["--json cannot write", "a folder that exists"]),
        (["run", "duplicate-data", "--rank", "3"], ["--rank", "--ranks"]),
        (["run", "input-pipeline", "--variant", "shared-store", "--set", "scan=64", "--set", "num-samples=1797"],
         ["the store would hold 7.54 GB", "give a smaller scan"]),
        (["run", "crash-recovery", "--steps", "1"], ["kill_step is 17, but steps count from 0 to 0", "or kill=none"]),
        (["show", "nowhere"], ["no record at nowhere", "--record"]),
        (["show", "--trace", "no/such/folder/x.json"], ["--trace cannot write", "a folder that exists"]),
        (["show", "--trace", "."], ["--trace cannot write", "give a file"]),
        (["show"], ["no record in", "labkit run duplicate-data"]),
        (["rnu"], ["rnu"]),
        (["capture", "--out", "x", "--labs", ""], ["--labs wants names with commas between", "one is empty", "given ''"]),
        (["capture", "--out", "x", "--labs", "overlap,,mfu"], ["one is empty"]),
        (["capture", "--out", "x", "--labs", "mfu, mfu"], ["one is there twice"]),
        (["capture", "--out", ""], ["needs a name; given ''"]),
        (["capture", "--out", "x", "--minutes", "inf"], ["minutes must be above 0", "given inf"]),
        (["show", ""], ["needs a name; given ''"]),
        (["show", "--figures", " "], ["needs a name; given ' '"]),
        (["show", "--trace", ""], ["needs a name; given ''"]),
        (["runs", "--json", ""], ["needs a name; given ''"]),
        (["run", "duplicate-data", "--record", ""], ["needs a name; given ''"]),
        (["run", "duplicate-data", "--json", ""], ["needs a name; given ''"]),
        (["run", "duplicate-data", "--ranks", "１２"], ["--ranks must be a whole number"]),
        (["run", "duplicate-data", "--ranks=1.0e1"], ["--ranks must be a whole number; given '1.0e1'"]),
        (["show", "last", "--output", "first"], ["--output must be a whole number; given 'first'", "labkit show --help"]),
        (["show", "last", "--fail-on", "fund"], ["no status 'fund'", "Did you mean 'found'?"]),
        (["run", "duplicate-data", "--ranks", "9" * 5000], ["--ranks must be a whole number", "…"]),
        (["run", "duplicate-data", "--hosts", "2", "--latency", "nan"], ["latency must be from 0", "given nan"]),
        (["run", "duplicate-data", "--set", "batch=3", "--set", "batch=4"], ["batch is set twice, to '3' and to '4'"]),
        (["run", "duplicate-data", "--steps", "3", "--set", "steps=4"], ["steps is set twice"]),
        (["run", "\x1b[2J\u202e"], ["no lab '\\x1b[2J\\u202e'"]),
    ],
)  # fmt: skip
def test_wrong_use_is_one_message_with_the_valid_ones_and_exit_code_2(capsys, monkeypatch, words, expected):
    message = wrong_use(capsys, monkeypatch, *words)
    for part in expected:
        assert part in message
    assert "Traceback" not in message


@pytest.mark.ranks
def test_a_run_over_hosts_says_what_they_are_and_what_the_link_gives(monkeypatch):
    done = labkit("run", "duplicate-data", "--ranks", 2, "--steps", 3, "--hosts", 2, "--link", "400mbit", "--json", "-")
    network = json.loads(done.stdout)["provenance"]["network"]
    assert network["hosts"] == 2 and network["rate_bits_per_s"] == 4e8
    assert network["way"] in ("root", "user", "emulated")
    assert (network["achieved_bits_per_s"] > 0) == (network["way"] != "emulated")
    asked = ["--hosts", 2, "--link", "1gbit", "--emulate-link"]
    monkeypatch.setenv("COLUMNS", "250")
    said = labkit("run", "duplicate-data", "--ranks", 2, "--steps", 3, *asked).stdout
    assert "2 hosts, 1 Gbit/s links (simulated)" in said and "The link is emulated" in said


def test_the_list_names_every_lab_and_how_to_run_one():
    done = labkit("list")
    assert done.returncode == 0 and "duplicate-data" in done.stdout and "labkit run" in done.stdout


def test_help_of_a_lab_shows_variants_and_settings_and_runs_nothing():
    done = labkit("run", "duplicate-data", "--help-lab")
    assert done.returncode == 0 and "leaky-split" in done.stdout and "num_samples" in done.stdout


@pytest.mark.ranks
def test_json_to_standard_output_is_one_object_and_nothing_else(tmp_path):
    done = process(
        "run", "duplicate-data", "--ranks", 2, "--set", "num_samples=101", "--json", "-", "--record", tmp_path / "r"
    )
    assert done.returncode == 0
    report = json.loads(done.stdout)
    assert report["lab"] == "duplicate-data" and report["variant"] == "broken"
    provenance = report["provenance"]
    assert provenance["source"] == "measured" and provenance["world_size"] == 2 and provenance["backend"] == "gloo"
    assert provenance["seed"] == 0 and provenance["torch"] and provenance["device"] and provenance["date"]
    assert report["measures"]["samples_per_epoch"] == {"value": 202, "unit": "samples"}
    first = report["verdicts"][0]
    assert first["detector"] == "rank-duplicates" and first["status"] == "found" and first["waste"] == 0.5
    assert first["where"].startswith("labkit/labs/duplicate_data/programs.py:") and first["fix"] and first["cause"]
    assert set(first["evidence"]["dataset_size"]) == {"value", "unit"}
    again = labkit("show", tmp_path / "r", "--json", "-")
    assert json.loads(again.stdout)["measures"] == report["measures"]


@pytest.mark.ranks
def test_a_run_prints_the_card_and_is_shown_again_with_figures(tmp_path):
    done = labkit("run", "duplicate-data", "--variant", "fixed", "--ranks", 3, "--epochs", 1, "--set", "num_samples=100",
                  "--set", "val-share=0.2", "--fail-on", "found")  # fmt: skip
    assert done.returncode == 0, done.stderr
    for part in ("duplicate-data / fixed: 3 ranks", "CLEAR", "measured", "kept in"):
        assert part in done.stdout
    shown = labkit("show", "last", "--figures", tmp_path / "figures")
    assert shown.returncode == 0
    assert {p.name for p in (tmp_path / "figures").iterdir()} >= {"who-read-what.png", "loss.png", "timeline.png"}
    traced = labkit("show", "last", "--trace", tmp_path / "trace.json")
    assert traced.returncode == 0 and "ui.perfetto.dev" in traced.stderr
    assert {e["ph"] for e in json.loads((tmp_path / "trace.json").read_text())["traceEvents"]} >= {"X", "M", "i"}
    assert labkit("show", "last", "--output", "0").stdout == "rank 0 printed nothing\n"
    assert labkit("show", "last", "--output", "7").returncode == 2


@pytest.mark.ranks
def test_fail_on_ends_with_1_and_says_what_it_hit(tmp_path):
    done = labkit("run", "duplicate-data", "--ranks", 2, "--steps", 3, "--fail-on", "found", "--json", tmp_path / "x.json")
    assert done.returncode == 1
    assert "--fail-on: rank-duplicates is found" in done.stderr
    assert json.loads((tmp_path / "x.json").read_text())["verdicts"][0]["status"] == "found"


@pytest.mark.ranks
def test_a_record_folder_that_is_in_use_is_not_overwritten(tmp_path):
    (tmp_path / "r").mkdir()
    (tmp_path / "r" / "precious").write_text("mine")
    done = labkit("run", "duplicate-data", "--record", tmp_path / "r")
    assert done.returncode == 2 and "not an empty folder" in done.stderr
    assert (tmp_path / "r" / "precious").read_text() == "mine"


@pytest.mark.ranks
def test_a_run_past_its_deadline_ends_with_3_and_says_where_each_rank_stands():
    done = labkit("run", "duplicate-data", "--ranks", 2, "--epochs", 1000, "--deadline", 8)
    assert done.returncode == 3
    assert "2 of 2 ranks had not finished after 8 s" in done.stderr
    assert "rank 0 waiting" in done.stderr and "rank 1 waiting" in done.stderr and "Traceback" not in done.stderr


@pytest.mark.ranks
@pytest.mark.parametrize(
    ("sent", "code", "said", "times"),
    [
        (signal.SIGINT, 130, "interrupted", 1),
        (signal.SIGINT, 130, "interrupted", 2),
        (signal.SIGINT, 130, "interrupted", 5),
        (signal.SIGTERM, 143, "ended from outside", 1),
        (signal.SIGHUP, 129, "ended from", 5),
        *(pytest.param(signal.SIGTERM, 143, "ended from outside", times, marks=pytest.mark.soak) for times in (2, 5)),
        *(pytest.param(signal.SIGHUP, 129, "ended from", times, marks=pytest.mark.soak) for times in (1, 2)),
    ],
)
def test_an_interrupt_ends_the_ranks_and_says_so_however_often_it_comes(tmp_path, sent, code, said, times):
    def foreground():  # a shell that puts the tests into the background has them ignore Ctrl-C, or the end of a terminal
        signal.signal(signal.SIGINT, signal.default_int_handler)
        signal.signal(signal.SIGHUP, signal.SIG_DFL)

    (tmp_path / "t").mkdir()
    process = subprocess.Popen([sys.executable, "-m", "labkit", "run", "duplicate-data", "--epochs", "1000", "--ranks", "2"],
                               cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True,
                               env={**os.environ, "TMPDIR": str(tmp_path / "t")}, preexec_fn=foreground)  # fmt: skip
    try:
        running = psutil.Process(process.pid)
        patience = time.monotonic() + 60
        while not list((tmp_path / "cache").rglob("rank-00001.jsonl")) and time.monotonic() < patience:
            time.sleep(0.05)
        children = running.children(recursive=True)
        assert children
        for _ in range(times):
            process.send_signal(sent)
            time.sleep(0.1 if times > 1 else 0)
        _, errors = process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == code and errors.count("\n") == 1 and said in errors, errors
    _, alive = psutil.wait_procs(children, timeout=10)
    assert not alive
    assert not [path.name for path in (tmp_path / "t").iterdir() if path.name.startswith(("labkit", "pymp"))]
    (folder,) = (tmp_path / "cache" / "runs").iterdir()
    assert not (folder / "variant" / "board").exists()


@pytest.mark.ranks
def test_a_scripts_own_probe_files_are_judged_too(tmp_path):
    from labkit.record.probe import Probe

    for rank in range(2):
        probe = Probe(tmp_path / f"rank-{rank:05d}.jsonl", rank=rank, world_size=2)
        probe.declare(dataset_size=20)
        import torch

        for batch in probe.batches(torch.arange(20.0).reshape(20, 1).split(5)):
            assert batch.shape == (5, 1)
        probe.close()
    done = labkit("show", tmp_path, "--json", "-")
    report = json.loads(done.stdout)
    assert report["verdicts"][0]["status"] == "found" and report["provenance"]["world_size"] == 2


def probed(folder, **facts):
    """What a script's own probe leaves."""
    import numpy as np

    from labkit.record.probe import Probe

    probe = Probe(folder / "rank-00000.jsonl")
    probe.declare(**facts)
    probe.begin_step()
    probe.samples("train", np.arange(4))
    probe.close()
    return folder


def test_figures_of_a_script_that_records_no_loss_are_drawn_but_for_the_loss(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["labkit", "show", str(probed(tmp_path)), "--figures", str(tmp_path / "figures")])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr().err
    assert ended.value.code == 0 and "not drawn: loss:" in said and 'probe.scalar("loss_local"' in said
    assert {path.name for path in (tmp_path / "figures").iterdir()} >= {"who-read-what.png", "timeline.png"}


def test_a_record_that_does_not_hold_what_its_lab_records_is_one_sentence(tmp_path, capsys, monkeypatch):
    def odd(self):
        return {}["no such measure"]

    monkeypatch.setattr("labkit.reading.Reading.measures", property(odd))
    message = wrong_use(capsys, monkeypatch, "show", str(probed(tmp_path)), "--lab", "duplicate-data")
    assert f"{tmp_path} does not hold what can be read of a script (KeyError: 'no such measure', in test_cli.py:" in message
    assert "run it again" in message and "Traceback" not in message


def test_what_a_lab_cannot_measure_is_said_and_costs_no_verdict(tmp_path, capsys, monkeypatch):
    def odd(record):
        return {}["no such measure"]

    lab = labs.spec("duplicate-data")
    monkeypatch.setattr("labkit.labs.duplicate_data.SPEC", dataclasses.replace(lab, measures=odd))
    monkeypatch.setattr(sys, "argv", ["labkit", "show", str(probed(tmp_path)), "--lab", "duplicate-data"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr()
    assert ended.value.code == 0 and "Do the ranks read the same data?" in said.out
    assert "not measured: " in said.err and "KeyError: 'no such measure'" in said.err


def test_show_ends_with_1_on_fail_on_too(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(
        sys, "argv", ["labkit", "show", str(probed(tmp_path)), "--fail-on", "found", "--fail-on", "not_applicable"]
    )
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr()
    assert (
        ended.value.code == 1 and "your script" in said.out and " is not_applicable" in said.err.partition("--fail-on: ")[2]
    )


def test_help_names_each_command_in_a_line_that_is_not_cut(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr(sys, "argv", ["labkit", "--help"])
    with pytest.raises(SystemExit):
        cli.main()
    said = capsys.readouterr().out.partition("Commands:")[2]
    lines = [line for line in said.splitlines() if line.strip()]
    assert [line.split()[0] for line in lines] == [
        "list", "run", "bench", "show", "runs", "compare", "capture", "explain", "doctor",
    ]  # fmt: skip
    assert all(line.endswith(".") and not line.endswith("...") for line in lines)


def test_help_says_of_what_type_options_are(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.setattr(sys, "argv", ["labkit", "run", "--help"])
    with pytest.raises(SystemExit):
        cli.main()
    said = capsys.readouterr().out
    for option in (
        "--ranks INTEGER",
        "--seed INTEGER",
        "--latency FLOAT",
        "--deadline FLOAT",
        "--device TEXT",
        "--json FILE",
    ):
        assert option in said
    assert "<str>" not in said.partition("Options:")[2]


def test_a_disk_that_is_full_is_one_sentence(tmp_path, capsys, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device", str(tmp_path / "board"))

    monkeypatch.setattr("labkit.facade.Lab.run", full)
    monkeypatch.setattr(sys, "argv", ["labkit", "run", "duplicate-data"])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    said = capsys.readouterr().err
    assert ended.value.code == 3 and said.count("\n") == 1
    assert f"No space left on device at {tmp_path / 'board'}; make room" in said and "LABKIT_CACHE" in said


def test_figures_that_cannot_be_written_are_wrong_use(tmp_path, capsys, monkeypatch):
    probed(tmp_path)
    (tmp_path / "figures" / "who-read-what.png").mkdir(parents=True)
    message = wrong_use(capsys, monkeypatch, "show", str(tmp_path), "--figures", str(tmp_path / "figures"))
    assert "--figures cannot write into" in message and "give another folder" in message


@pytest.mark.ranks
def test_it_joins_the_ranks_of_torchrun(tmp_path):
    done = subprocess.run(
        [sys.executable, "-m", "torch.distributed.run", "--nproc-per-node", "2", "--rdzv-backend", "c10d",
         "--rdzv-endpoint", "127.0.0.1:0", "-m", "labkit", "run", "duplicate-data", "--set", "num_samples=101", "--json",
         str(tmp_path / "x.json")],
        capture_output=True, text=True, cwd=ROOT, env={**os.environ, "OMP_NUM_THREADS": "1"},
    )  # fmt: skip
    assert done.returncode == 0, done.stderr[-3000:]
    assert done.stdout.count("FOUND") == 1, "rank 0 alone reports"
    assert json.loads((tmp_path / "x.json").read_text())["measures"]["samples_per_epoch"]["value"] == 202


@pytest.mark.ranks
def test_kept_runs_are_listed_and_shown_by_name():
    assert "no run in" in labkit("runs").stdout
    for variant in ("broken", "fixed"):
        assert labkit("run", "duplicate-data", "--variant", variant, "--ranks", 2, "--set", "num_samples=64").returncode == 0
    rows = json.loads(labkit("runs", "--json", "-").stdout)["runs"]
    assert [(row["lab"], row["variant"], row["ranks"]) for row in rows] == [
        ("duplicate-data", "fixed", 2),
        ("duplicate-data", "broken", 2),
    ]
    listed = labkit("runs").stdout
    assert all(f"duplicate-data / {row['variant']}" in listed and row["name"] in listed for row in rows)
    shown = labkit("show", rows[1]["name"])
    assert shown.returncode == 0 and "duplicate-data / broken" in shown.stdout
    assert rows[1]["verdict"].startswith("✗ found rank-duplicates") and rows[0]["verdict"] == "✓ clear"
    assert all(row["settings"] == "num samples 64" and row["verdict"] in listed for row in rows)
    assert labkit("show", rows[1]["name"][-6:]).stdout == shown.stdout, "the end of a name that no other has will do"
    assert json.loads(labkit("runs", "--json", "-", "--lab", "dup").stdout)["runs"] == rows
    assert json.loads(labkit("runs", "--json", "-", "--lab", "04").stdout)["runs"] == []


@pytest.mark.ranks
def test_two_runs_are_compared_in_sentences_and_sent_to_a_colleague_as_one_page(tmp_path):
    for seed, variant in enumerate(("broken", "fixed")):
        words = ("--variant", variant, "--ranks", 2, "--set", "num_samples=64", "--seed", seed)
        assert labkit("run", "03", *words).returncode == 0
    said = labkit("compare")
    assert said.returncode == 0, said.stderr
    assert "Set differently: variant fixed (before: broken), seed 1 (before: 0)." in " ".join(said.stdout.split())
    assert "Do the ranks read the same data? Now: clear. Before: found." in said.stdout
    assert "before: broken" in said.stdout and "unique_samples" in said.stdout
    told = json.loads(labkit("compare", "--json", "-").stdout)
    assert told["before"]["variant"] == "broken" and told["now"]["variant"] == "fixed" and len(told["differences"]) >= 3
    alone = labkit("compare", "last", "last")
    assert alone.returncode == 0 and "Both runs have the same settings." in alone.stdout
    page = tmp_path / "report.html"
    assert labkit("show", "last", "--html", page).returncode == 0
    html = page.read_text()
    assert html.count("data:image/png;base64,") >= 3 and "default-src 'none'" in html and "✓" in html
    assert not re.findall(r"(?:src|href)=.(?!data:)", html), "nothing is loaded from anywhere"
    refused = labkit("show", "last", "--html", tmp_path / "no" / "r.html")
    assert refused.returncode == 2 and "--html cannot write" in refused.stderr


@pytest.mark.parametrize("words", [["list"], ["run", "duplicate-data", "--help-lab"], ["runs"]])
def test_letters_that_the_terminal_lacks_are_replaced(words, tmp_path):
    done = process(*words, env={**os.environ, "LANG": "C", "PYTHONIOENCODING": "ascii", "COLUMNS": "20", "TERM": "dumb"})
    assert done.returncode == 0 and not done.stderr and done.stdout.isascii()


def in_a_shell(words: str, how: str = "") -> tuple[int, str, str]:
    command = f"{how}{sys.executable} -m labkit {words}"
    done = subprocess.run(["bash", "-c", command], capture_output=True, text=True, cwd=ROOT)
    return done.returncode, done.stdout, done.stderr


def test_a_pipe_that_nobody_reads_and_a_full_disk_end_without_a_traceback():
    assert in_a_shell("list | true; echo ${PIPESTATUS[0]}") == (0, "0\n", "")
    if Path("/dev/full").exists():
        for how in ("", "TERM=dumb ", "PYTHONUNBUFFERED=1 "):  # the first write fails, or the last one
            code, _, said = in_a_shell("list >/dev/full", how)
            assert code == 3 and said.count("\n") == 1 and "No space left on device" in said
    assert in_a_shell("list >&- 2>&-")[0] == 0


def test_a_script_that_the_doctor_ended_at_its_deadline_ends_with_a_code_of_its_own(monkeypatch):
    ended = Diagnosis(("train.py",), Ended([], 12.0, stopped=True), None)
    monkeypatch.setattr("labkit.doctor.diagnosis.examine", lambda *command, **how: ended)
    done = labkit("doctor", "--deadline", 12, "train.py")
    assert done.returncode == cli.EXIT_AT_DEADLINE and "it was ended at its deadline" in done.stdout
