"""A block of a program or a notebook, watched from within."""

from __future__ import annotations

import contextlib
import json
import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest
import torch
from scripts_of import skip_without

import labkit.doctor
from labkit.errors import UsageError

ROOT = Path(__file__).parents[2]
SCRIPTS = Path(__file__).parent / "scripts"
pytestmark = pytest.mark.timeout(120)


def train(steps=12, cleared=True):
    model = torch.nn.Linear(8, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    for _ in range(steps):
        if cleared:
            optimizer.zero_grad()
        model(torch.randn(16, 8)).square().mean().backward()
        optimizer.step()


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "record"


def test_a_block_is_watched_and_asked_and_shows_itself(folder):
    with labkit.doctor.watch(record=folder) as seen:
        assert seen.diagnosis is None and "watching" in repr(seen) + seen._repr_html_()
        train(cleared=False)
    assert [verdict.reason for verdict in seen.diagnosis.found] == ["gradients-never-cleared"]
    assert "zero_grad" in repr(seen) and "zero_grad" in seen._repr_html_()


def test_what_was_watched_is_as_it_was_before(folder):
    before = (torch.nn.Module.__call__, torch.Tensor.backward, torch.save, torch.optim.Optimizer.__init__)
    with labkit.doctor.watch(record=folder) as seen:
        assert torch.nn.Module.__call__ is not before[0]
        train()
    assert (torch.nn.Module.__call__, torch.Tensor.backward, torch.save, torch.optim.Optimizer.__init__) == before
    assert not seen.diagnosis.found
    updates = sum(step.counts.get("updates", 0) for step in seen.diagnosis.reading.run.ranks[0].steps)
    train()
    assert updates == 12


def test_a_block_ends_after_so_many_steps_or_with_its_own_error(tmp_path):
    with labkit.doctor.watch(record=tmp_path / "a", steps=5) as seen:
        train()
        raise AssertionError("the block ends before this")
    assert seen.diagnosis.ended.ranks[0].end == "enough"
    with pytest.raises(ZeroDivisionError), labkit.doctor.watch(record=tmp_path / "b") as seen:
        train()
        raise ZeroDivisionError
    assert seen.diagnosis.ended.ranks[0].end == "raised ZeroDivisionError"


def test_a_warning_of_torchs_names_the_line_that_it_named_before(folder):
    optimizer = torch.optim.SGD([torch.nn.Parameter(torch.zeros(2))], lr=0.1)
    schedule = torch.optim.lr_scheduler.StepLR(optimizer, 1)
    with warnings.catch_warnings(record=True) as seen, labkit.doctor.watch(record=folder):
        warnings.simplefilter("always")
        schedule.step()  # before the optimizer's
    assert [(Path(one.filename).name, "lr_scheduler.step" in str(one.message)) for one in seen] == [
        (Path(__file__).name, True)
    ]


def test_a_watch_within_a_watch_is_refused(tmp_path):
    with (
        labkit.doctor.watch(record=tmp_path / "a"),
        pytest.raises(UsageError, match="leave the inner one out"),
        labkit.doctor.watch(record=tmp_path / "b"),
    ):
        pass


# Several ranks, under a launcher


def torchrun(*command, **environment):
    launcher = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    path = os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH", "")]))
    variables = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", **environment}
    return subprocess.run(
        [*launcher, *map(str, command)], capture_output=True, text=True, env=variables, cwd=SCRIPTS, timeout=110
    )


@pytest.mark.ranks
def test_under_a_launcher_each_rank_is_watched_and_rank_0_asks(folder):
    ran = torchrun("watched_block.py", folder, "ends")
    said = sorted((json.loads(line) for line in ran.stdout.splitlines()), key=lambda one: one["rank"])
    assert ran.returncode == 0
    assert said == [{"rank": 0, "found": ["ranks-identical"]}, {"rank": 1, "found": None}]


@pytest.mark.ranks
def test_a_rank_that_raises_under_a_launcher_does_not_take_the_report_with_it(tmp_path):
    report = tmp_path / "report.json"
    ran = torchrun("-m", "labkit", "doctor", "--json", report, "rank_raises.py", LABKIT_CACHE=str(tmp_path))
    assert ran.returncode != 0 and "RuntimeError: mine" in ran.stderr
    said = json.loads(report.read_text())
    assert said["trained"] and said["ranks"][1] == {"rank": 1, "end": "raised RuntimeError", "code": 1}


# Callbacks


class Rows(torch.utils.data.Dataset):
    def __len__(self):
        return 64

    def __getitem__(self, at):
        row = torch.randn(8, generator=torch.Generator().manual_seed(at))
        return {"x": row, "labels": row.sum()}


class Model(torch.nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = torch.nn.Linear(8, 1)

    def forward(self, x, labels):
        return {"loss": (self.layer(x)[:, 0] - labels).square().mean()}


@pytest.mark.filterwarnings("ignore")
def test_a_trainer_of_transformers_is_watched_by_a_callback(folder, capsys):
    skip_without("transformers")
    from transformers import Trainer, TrainingArguments

    how = dict(num_train_epochs=2, per_device_train_batch_size=4, report_to=[], use_cpu=True, disable_tqdm=True)
    arguments = TrainingArguments(output_dir=str(folder.parent / "out"), save_strategy="no", **how)
    doctor = labkit.doctor.for_trainer(record=folder)
    Trainer(model=Model(), args=arguments, train_dataset=Rows(), callbacks=[doctor]).train()
    assert doctor.seen.diagnosis.trained and not doctor.seen.diagnosis.found
    assert doctor.seen.diagnosis.updates == 32
    assert "clear: " in capsys.readouterr().out


@pytest.mark.filterwarnings("ignore")
def test_a_trainer_of_lightning_is_watched_by_a_callback(folder, capsys):
    skip_without("lightning")
    import lightning

    class Module(lightning.LightningModule):
        def __init__(self):
            super().__init__()
            self.model = Model()

        def training_step(self, batch, _):
            if self.raises and self.global_step == 20:
                raise ZeroDivisionError
            return self.model(**batch)["loss"]

        def configure_optimizers(self):
            return torch.optim.SGD(self.parameters(), lr=0.01)

    for raises in (False, True):
        Module.raises = raises
        doctor = labkit.doctor.for_lightning(record=folder / str(raises))
        quiet = dict.fromkeys(("logger", "enable_checkpointing", "enable_progress_bar", "enable_model_summary"), False)
        trainer = lightning.Trainer(accelerator="cpu", max_epochs=2, callbacks=[doctor], **quiet)
        loader = torch.utils.data.DataLoader(Rows(), batch_size=4, shuffle=True)
        with pytest.raises(ZeroDivisionError) if raises else contextlib.nullcontext():
            trainer.fit(Module(), loader)
        assert not doctor.seen.diagnosis.found and doctor.seen.diagnosis.updates == (20 if raises else 32)
        assert doctor.seen.diagnosis.ended.ranks[0].end == ("raised ZeroDivisionError" if raises else "finished")
    assert "clear: " in capsys.readouterr().out
