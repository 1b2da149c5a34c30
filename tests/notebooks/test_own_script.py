"""What a lesson says of the reader's own script: its code runs as printed, and the lab's detectors read what it leaves."""

import re
from pathlib import Path

import msgspec
import nbformat
import pytest
import torch
from lab_cases import by_slug
from lessons_without_a_lab import WITHOUT_A_LAB

from labkit import detect, labs
from labkit.record.store import read_record

ROOT = Path(__file__).resolve().parents[2]
NOTEBOOKS = sorted((ROOT / "notebooks").glob("*.ipynb"))
ANSWERED = {slug: case.own_script for slug, case in by_slug().items() if case.own_script}
"""By lab: the detectors that the code by itself is enough for. Some labs want DDP or an agent: see tests/ranks."""


class Scaler:
    def get_scale(self):
        return 1024.0


def paragraph_of(path):
    """All that follows "Your own script" in a notebook, or nothing."""
    cells = [cell.source for cell in nbformat.read(path, as_version=4).cells if "**Your own script**" in cell.source]
    return cells[0].split("**Your own script**")[1] if cells else ""


def slug_of(path):
    return path.stem[3:].replace("_", "-")


def stubs():
    """What a script has by the time it makes its probe."""
    torch.manual_seed(0)
    model = torch.nn.Linear(4, 4)
    data = torch.utils.data.TensorDataset(torch.randn(64, 4))
    return {
        **{"model": model, "optimizer": torch.optim.SGD(model.parameters(), lr=0.1), "scaler": Scaler(), "data": data},
        **{"epochs": 2, "pulled": 1, "pushed": 3, "loss": torch.tensor(1.0), "norm": torch.tensor(1.0)},
    }


def written_by(code, folder, monkeypatch):
    """The record of two ranks that ran the code, one after the other."""
    monkeypatch.chdir(folder)
    for rank in range(2):
        given = stubs() | {"rank": rank, "world_size": 2}
        sampler = torch.utils.data.DistributedSampler(given["data"], 2, rank)
        exec(code, given | {"loader": torch.utils.data.DataLoader(given["data"], 4, sampler=sampler)})
    return read_record(folder)


with_paragraph = pytest.mark.parametrize(
    "path", [path for path in NOTEBOOKS if paragraph_of(path) and path.stem not in WITHOUT_A_LAB], ids=lambda path: path.stem
)


@with_paragraph
def test_it_names_its_own_lab_and_every_detector_of_it(path):
    said, slug = paragraph_of(path), slug_of(path)
    assert re.findall(r"labkit show FOLDER --lab ([\w-]+)", said) == [slug]
    assert "rank=rank, world_size=world_size" in said
    if slug != "overlap":  # one line serves all of its detectors
        assert [name for name in labs.spec(slug).detectors if f"`{name}`" not in said] == []


@pytest.mark.parametrize("path", [path for path in NOTEBOOKS if slug_of(path) in ANSWERED], ids=lambda path: path.stem)
def test_its_code_leaves_what_the_detectors_read(path, tmp_path, monkeypatch):
    (code,) = re.findall(r"```python\n(.*?)```", paragraph_of(path), re.DOTALL)
    record = msgspec.structs.replace(written_by(code, tmp_path, monkeypatch), lab=slug_of(path))
    answered = {name: detect.detector(name)(record).status for name in ANSWERED[slug_of(path)]}
    assert "not_applicable" not in answered.values(), answered
