"""What a save costs the training, in the background and not: a ratio within one run of each, on one machine."""

from __future__ import annotations

import pytest

import labkit

pytestmark = pytest.mark.benchmark

SIZE = {"hidden": 1024, "steps": 40, "interval": 10, "kill": "none", "ranks": 2}


def test_in_the_background_training_waits_for_the_copy_only(tmp_path, capsys):
    lab = labkit.lab("crash-recovery")
    found = {}
    for variant in ("fixed", "async-save"):
        found[variant] = lab.measures(lab.run(variant, device="cpu", record_dir=tmp_path / variant, **SIZE))
    stall = {variant: measures["save_stall_ms"].value for variant, measures in found.items()}
    with capsys.disabled():
        print(
            f"\n{found['fixed']['save_bytes'].value / 1e6:.1f} MB: training waits {stall['fixed']:.0f} ms for a save, "
            f"{stall['async-save']:.1f} ms for one in the background: {stall['async-save'] / stall['fixed']:.0%}"
        )
    assert stall["async-save"] < stall["fixed"] / 2
