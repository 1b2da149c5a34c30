"""What not waiting gains with one slow worker, as a ratio within one run: asynchronous over synchronous throughput."""

import pytest

import labkit
from labkit.theory.delay import throughput_ratio

pytestmark = [pytest.mark.benchmark, pytest.mark.timeout(600)]


@pytest.mark.parametrize(("ranks", "straggler"), [(2, 4.0), (4, 4.0), (4, 8.0), (4, 1.0)])
def test_throughput_over_synchronous_is_what_the_slow_worker_costs(ranks, straggler, tmp_path, capsys):
    lab = labkit.lab("stale-gradients")
    how = {"ranks": ranks, "straggler": straggler, "steps": 30, "step_ms": 25.0, "repeats": 0, "lr": 0.05, "device": "cpu"}
    record = lab.run("async-straggler", record_dir=tmp_path / "record", **how)
    measured, computed = lab.measures(record)["throughput_over_sync"].value, throughput_ratio(ranks, straggler)
    with capsys.disabled():
        print(f"\n{ranks} workers, one {straggler:g} times as slow: {measured:.2f}, by computation alone {computed:.2f}")
    # a run of T gradients ends with the slow one's last, which others no longer follow; and all-reduces cost time too
    assert 0.75 * computed < measured < 1.6 * computed
