"""Published figures: each is cited, each recomputes or says why not, and a damaged table is refused by file and line."""

import re
import subprocess
import sys
from collections import Counter, defaultdict

import pytest

from labkit.errors import RecordError, UsageError
from labkit.facts import published
from labkit.facts.devices import device, peak_flops
from labkit.facts.published import TOLERANCE, bands, checkpoints, collectives, failures, matmuls, share_below, training
from labkit.facts.published_rows import CollectiveRow, TrainingRow
from labkit.facts.shipped import data_folder
from labkit.theory.flops import CAUSAL_ATTENTION, CONVENTIONS, FULL_ATTENTION

TABLES = {
    "training.csv": training,
    "collectives.csv": collectives,
    "matmul.csv": matmuls,
    "failures.csv": failures,
    "checkpoints.csv": checkpoints,
}
NOT_IN_THE_TABLE_OF_DEVICES = {"H100-96GB (HBM2e, 500 W)"}
README = (data_folder() / "published" / "README.md").read_text(encoding="utf-8")


def answer(row) -> str:
    """What `recomputes` must say, from the figures alone."""
    gap = row.gap()
    if row.tokens_per_s_per_device is None or gap is None:
        return "not_stated"
    if row.throughput_from == "tflops":
        return "circular"
    return "yes" if abs(gap) <= TOLERANCE else "no"


def number(value: float | None) -> float:
    assert value is not None
    return value


def test_there_are_150_training_of_8_sources_on_6_devices():
    rows = training()
    assert len(rows) >= 150
    assert len({row.source for row in rows}) >= 8
    assert len({row.device for row in rows}) >= 6


@pytest.mark.parametrize("name", TABLES)
def test_every_row_has_a_public_address_and_the_readme_counts_them(name):
    rows = TABLES[name]()
    assert all(re.fullmatch(r"https://[\w.-]+\.\w+/[^\s]+", row.address) for row in rows)
    assert f"| `{name}` | {len(rows)} |" in README
    assert all(len(row.note) <= 120 for row in rows), "a note is short"


def test_every_figure_recomputes_within_one_percent_or_is_listed_as_not_doing_so():
    said = {row.id: row.recomputes for row in training()}
    assert said == {row.id: answer(row) for row in training()}


def test_the_rows_that_do_not_recompute_are_these_and_each_says_why():
    rows = [row for row in training() if row.recomputes == "no"]
    assert Counter(row.source for row in rows) == {
        "IBM fms-fsdp": 12,
        "NVIDIA Megatron-Bridge": 5,
        "InternEvo FLOPS test": 6,
    }
    assert all(re.search(r"comes out \d\.\d % (high|low): \w+", row.note) for row in rows)
    assert f"or `no` ({len(rows)};" in README


def test_the_size_of_the_gap_in_a_note_is_the_gap():
    for row in training():
        gap = row.gap()
        if row.recomputes == "no" and gap is not None:
            assert f"comes out {abs(gap):.1%}"[:-1] in row.note and ("high" if gap > 0 else "low") in row.note


def test_the_readme_counts_every_answer():
    counted = Counter(row.recomputes for row in training())
    assert f"`yes` ({counted['yes']})" in README
    assert f"`circular` ({counted['circular']})" in README
    assert f"`not_stated` ({counted['not_stated']})" in README


def test_no_other_convention_fits_the_rows_of_a_source_better_than_its_own():
    gaps = defaultdict(lambda: defaultdict(list))
    for row in training():
        if row.recomputes == "yes" and row.seq_len >= 2048:
            printed = number(row.tflops()) / (1 + number(row.gap()))
            for name, one in CONVENTIONS.items():
                gaps[row.source, row.convention][name].append(abs(number(row.tflops(one)) / printed - 1))
    for (source, own), by_name in gaps.items():
        if source != "TinyLlama" and len(by_name[own]) > 1:
            mean = {name: sum(values) / len(values) for name, values in by_name.items()}
            assert min(mean, key=mean.__getitem__) == own, source


def test_conventions_of_the_readme_are_those_of_the_arithmetic():
    listed = dict(re.findall(r"^\| `(\w+)` \| ([^|]+) \|", README, re.M))
    assert {name: listed.get(name) for name in CONVENTIONS} == {name: one.formula for name, one in CONVENTIONS.items()}
    assert {row.convention for row in training()} - {""} <= set(CONVENTIONS)


def test_every_peak_is_the_dense_one_of_the_table_of_devices():
    rows = [row for row in training() if row.device not in NOT_IN_THE_TABLE_OF_DEVICES]
    assert {row.peak_tflops for row in training() if row not in rows} == {None}
    assert all(row.peak_tflops == pytest.approx(peak_flops(row.device, row.precision) / 1e12) for row in rows)


def test_every_other_device_is_in_the_table_too():
    for row in (*collectives(), *matmuls()):
        assert device(getattr(row, "device_id", row.device))


def test_full_recomputation_makes_the_hfu_of_llm_foundry_four_thirds_of_its_mfu():
    rows = [row for row in training() if row.source == "MosaicML llm-foundry"]
    expected = {"full": 4 / 3, "none": 1}
    assert all(
        number(row.stated_hfu_pct) / number(row.stated_mfu_pct) == pytest.approx(expected[row.recomputation], rel=2e-3)
        for row in rows
    )


def test_the_axes_of_the_mesh_multiply_to_the_number_of_devices():
    for row in training():
        if row.dp and row.tp and row.pp and row.cp in (None, 1):
            assert row.dp * row.tp * row.pp == row.num_devices, row.id


def test_bus_bandwidth_is_algorithm_bandwidth_times_its_factor():
    rows = [row for row in collectives() if row.collective == "all_reduce" and (row.algbw_gb_s or 0) > 1]
    assert len(rows) > 50
    for row in rows:
        factor = 2 * (row.num_devices - 1) / row.num_devices
        assert row.busbw_gb_s == pytest.approx(number(row.algbw_gb_s) * factor, rel=0.01)
        if row.time_us is not None:
            assert row.algbw_gb_s == pytest.approx(row.size_bytes / row.time_us / 1e3, rel=0.01)


def test_no_matmul_beats_the_peak_that_a_vendor_prints():
    for row in matmuls():
        printed = peak_flops(row.device_id, row.precision) / 1e12
        assert 0.4 < row.achieved_tflops / printed < 1
        if row.stated_peak_tflops != pytest.approx(printed, rel=0.01):
            assert "the vendor prints" in row.note


def test_the_causes_of_interruptions_add_up_to_the_unexpected_ones():
    counts = {row.cause: row.value for row in failures() if row.measure == "interruptions"}
    total, planned, unexpected = (counts.pop(cause) for cause in ("all", "planned", "unexpected"))
    assert sum(counts.values()) == unexpected == total - planned == 419


def test_a_gpu_of_the_largest_published_run_was_interrupted_every_50700_hours():
    row = next(row for row in failures() if row.cause == "unexpected")
    assert row.num_devices * number(row.period_days) * 24 / row.value == pytest.approx(50_700, rel=1e-3)


def test_about_a_tenth_of_published_points_lie_below_30_percent():
    rows = training()
    assert 0.05 < share_below(rows, 0.30) < 0.15
    assert 0.05 < share_below(rows, 0.30, per_source=True) < 0.15
    assert share_below(rows, 1.0) == 1


def test_bands_hold_every_row_with_an_mfu_once():
    found = bands(training())
    assert sum(band.num_rows for band in found) == sum(row.mfu is not None for row in training())
    assert sum(band.share for band in found) == pytest.approx(1)
    assert sum(band.share for band in found if band.high is not None and band.high <= 0.30) == pytest.approx(
        share_below(training(), 0.30)
    )
    assert found[-1].low == 0.60 and found[-1].share < 0.05, "over 60 % is rare"


def test_the_convention_moves_the_share():
    assert share_below(training(), 0.40, by=CAUSAL_ATTENTION) > share_below(training(), 0.40, by=FULL_ATTENTION)


def test_one_vote_a_source_differs_from_one_vote_a_row():
    low = [row for row in training() if row.source == "BigScience BLOOM prequel"]
    high = [row for row in training() if row.source == "flash-attention training"]
    assert share_below([*low, *high], 0.40) == pytest.approx(30 / 35)
    assert share_below([*low, *high], 0.40, per_source=True) == 0.5


@pytest.mark.parametrize("threshold", [30, 0, -0.1])
def test_a_threshold_in_percent_is_refused(threshold):
    with pytest.raises(UsageError, match="write 0.30 for 30 %"):
        share_below(training(), threshold)


def test_a_share_of_nothing_is_refused():
    with pytest.raises(UsageError, match="no row has both"):
        share_below([], 0.3)
    with pytest.raises(UsageError, match="rise from above 0"):
        bands(training(), (0.4, 0.3))


def damaged(tmp_path, name, change):
    """A copy of a table's head and first row with one cell changed; None leaves the column out."""
    head, first = (data_folder() / "published" / name).read_text(encoding="utf-8").splitlines()[:2]
    cells = dict(zip(head.split(","), first.split(","), strict=True))
    cells |= {key: value for key, value in change.items() if value is not None}
    kept = [key for key in cells if change.get(key, "") is not None]
    path = tmp_path / name
    path.write_text(",".join(kept) + "\n" + ",".join(cells[key] for key in kept) + "\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"layers": "eighty"}, "layers"),
        ({"layers": "0"}, "layers"),
        ({"tokens_per_s_per_device": "-1"}, "tokens_per_s_per_device"),
        ({"tokens_per_s_per_device": "inf"}, "tokens_per_s_per_device"),
        ({"stated_mfu_pct": "nan"}, "stated_mfu_pct"),
        ({"convention": "6n_13lhs"}, "convention must be empty or one of 6n_12lhs"),
        ({"recomputes": "maybe"}, "recomputes"),
        ({"recomputes": "no"}, "needs its reason in note"),
        ({"throughput_from": ""}, "both or neither"),
        ({"address": "mosaicml/llm-foundry"}, "address"),
        ({"ffn": None}, "ffn"),
        ({"surprise": "1"}, "surprise"),
    ],
)
def test_a_damaged_row_is_refused_with_file_and_line(tmp_path, change, says):
    with pytest.raises(RecordError, match=rf"training\.csv:2: .*{says}"):
        published.read(damaged(tmp_path, "training.csv", change), TrainingRow)


def test_a_row_with_a_cell_too_many_or_an_id_twice_is_refused(tmp_path):
    path = damaged(tmp_path, "collectives.csv", {})
    head, first = path.read_text().splitlines()
    path.write_text(f"{head}\n{first}\n{first}\n")
    with pytest.raises(RecordError, match=r":3: id 'AR-001' is already on line 2"):
        published.read(path, CollectiveRow)
    path.write_text(f"{head}\n{first},more\n")
    with pytest.raises(RecordError, match=r":2: expected 16 cells"):
        published.read(path, CollectiveRow)


def test_tables_load_without_torch():
    code = "import sys, labkit.facts.published as p; p.training(); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "False"
