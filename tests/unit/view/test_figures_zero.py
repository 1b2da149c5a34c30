"""The figures of lab 06 by their artists and labels, at one record, two, a comparison, and odd sizes."""

import msgspec
import pytest

from labkit.detect.sharding.summary import peak, stage_table, what_if_table, zero_measures
from labkit.errors import UsageError
from labkit.record.table import Table
from labkit.theory.zero import GB, fewest_ranks
from labkit.view.figures import figure
from labkit.view.tables import in_terminal, table_card

from ..builders import record_of, run_of
from ..zero_runs import cheaper_run, record, run_with

INSTANT = {"parameters": 1000, "gradients": 0, "optimizer_state": 2000, "unsharded": 4000, "buffers": 0}
KEPT = {
    "init": {**INSTANT, "unsharded": 0},
    "forward": INSTANT,
    "backward_end": {**INSTANT, "gradients": 1000, "unsharded": 0},
}
NAMES = ("memory-over-a-step", "traffic-by-collective", "step-on-two-links", "loss-beside-one")


def broken(ranks=4):
    return record(run_with(kept=KEPT, ranks=ranks), single=run_with("alone", role="single", ranks=1, stage=-1))


def comparison(ranks=4):
    runs = {"fsdp2-reshard": run_with(role="fsdp2-reshard", kept=KEPT, ranks=ranks)}
    runs |= {name: run_with(name, role=name, kept=KEPT, ranks=ranks) for name in ("ddp", "zero1", "hsdp", "deepspeed-3")}
    return msgspec.structs.replace(record_of(runs["ddp"]), runs=runs)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("ranks", [2, 3, 4, 20])
def test_every_figure_is_drawn_of_one_of_two_and_of_a_comparison_and_says_its_source(name, ranks):
    for given in ([broken(ranks)], [broken(ranks), broken(ranks)], [comparison(ranks) if ranks != 3 else broken(3)]):
        picture = figure(name)(*given)
        assert "measured 2025-01-02" in picture.alt and len(picture.alt) > 60
        assert picture.png()[:4] == b"\x89PNG"


def test_memory_has_a_panel_a_strategy_and_a_bar_a_rank_category_and_instant():
    few = msgspec.structs.replace(comparison(), runs=dict(list(comparison().runs.items())[:3]))
    axes = [axis for axis in figure("memory-over-a-step")(few).figure.axes if axis.get_visible()]
    assert [axis.get_title(loc="left") for axis in axes] == ["fsdp2-reshard", "ddp", "zero1"]
    assert len(axes[0].patches) == 4 * 6 * 4, "ranks, categories, three instants and the peak"


def test_of_many_strategies_the_most_that_each_keeps_is_drawn_a_bar_each():
    picture = figure("memory-over-a-step")(comparison())
    (axis,) = picture.figure.axes
    names = [label.get_text() for label in axis.get_yticklabels()]
    assert names == ["fsdp2-reshard", "ddp", "zero1", "hsdp", "deepspeed-3"]
    for place, run in enumerate(comparison().runs.values()):
        bars = [bar for bar in axis.patches if abs(bar.get_y() + bar.get_height() / 2 - place) < 0.1]
        assert sum(bar.get_width() for bar in bars) == pytest.approx(peak(run))
        assert f"{names[place]}: {peak(run):.2f} bytes a parameter at the most" in picture.alt


def test_the_highest_bar_is_the_peak_that_the_measure_the_table_and_the_alt_text_say():
    """It comes as a collective begins, between the instants that have a bar of their own."""
    found = record(run_with(kept=KEPT, peak=8280))
    picture = figure("memory-over-a-step")(found)
    assert max(patch.get_y() + patch.get_height() for patch in picture.figure.axes[0].patches) == pytest.approx(8.28)
    assert "8.28 bytes a parameter at the most" in picture.alt and zero_measures(found)["peak"].value == 8.28
    (row,) = stage_table(found).rows
    assert row[stage_table(found).columns.index("peak")] == "8.28"


def test_what_was_kept_at_the_peak_is_drawn_by_category_where_it_is_told():
    from labkit.record.schema import Event

    told = {"parameters": 1000, "gradients": 2000, "optimizer_state": 2000, "unsharded": 3000, "buffers": 280}
    run = run_with(kept=KEPT, peak=0)
    logs = [
        msgspec.structs.replace(log, events=(*log.events, Event("peak", 2, 0, {"peak": 8280, **told}))) for log in run.ranks
    ]
    (axis,) = figure("memory-over-a-step")(record(msgspec.structs.replace(run, ranks=tuple(logs)))).figure.axes
    at_peak = [patch.get_height() for patch in axis.patches if patch.get_x() > 2.5 and patch.get_height()]
    assert sorted({round(height, 9) for height in at_peak}) == [0.28, 1.0, 2.0, 3.0]


@pytest.mark.parametrize("given, said", [(0.0, "made so that stage 2 just fits"), (9.0, "as set")])
def test_the_memory_of_a_device_says_how_it_was_chosen(given, said):
    found = msgspec.structs.replace(record(run_with(kept=KEPT)), config={"room": given})
    (legend,) = figure("memory-over-a-step")(found).figure.legends
    assert any(said in text.get_text().replace("\n", " ") for text in legend.get_texts())
    assert any(said in note for note in stage_table(found).notes)


def test_traffic_stacks_what_was_dispatched_up_to_the_units_of_the_paper():
    (axis,) = figure("traffic-by-collective")(record(run_with(kept=KEPT), cheaper=cheaper_run())).figure.axes
    assert max(patch.get_x() + patch.get_width() for patch in axis.patches) == pytest.approx(3)


@pytest.mark.parametrize("name", NAMES[:2])
def test_a_record_without_a_strategy_is_refused_with_what_to_draw(name):
    with pytest.raises(UsageError, match="declared no strategy"):
        figure(name)(record_of(run_of([[[[1, 2]], [[3, 4]]]])))


def test_a_table_reads_the_same_in_text_in_a_card_and_in_a_terminal():
    table = Table("Title", ("a", "b"), (("<x>", "1"), ("yy", "22")), ("a note",))
    assert repr(table).splitlines() == ["Title", "a     b", "<x>   1", "yy   22", "a note"]
    assert "&lt;x&gt;" in table_card(table) and table._repr_html_() == table_card(table)
    assert len(in_terminal(table)) == 2


def test_the_table_sets_aside_what_the_formulas_do_and_says_so():
    table = what_if_table()
    (row,) = [row for row in table.rows if row[0] == "72 B"]
    assert row[-1] == f"{fewest_ranks(72e9, 80 * GB, reserve_bytes=10 * GB):,}" == "17"
    assert fewest_ranks(72e9, 80 * GB, reserve_bytes=0) == 15 and "10 GB of it set aside" in table.notes[0]
