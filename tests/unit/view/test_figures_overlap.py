"""The figures of overlap, by what is in them."""

import msgspec
import pytest

from labkit.errors import UsageError
from labkit.facade import Lab
from labkit.labs import overlap
from labkit.record.schema import Step
from labkit.view.figures import figure, figures_of
from labkit.view.figures.overlap import bucket_sweep, compute_over_comm, exposure_bars

from ..detect.overlap_readings import MS, ddp_step, record, run_of, same_on, spans

MINE = list(figures_of("overlap"))


@pytest.fixture
def broken():
    return record(same_on(2, buckets=((200, 400),)))


@pytest.fixture
def fixed():
    found = record(same_on(2, buckets=((50, 99), (100, 149), (150, 199), (200, 249))))
    return msgspec.structs.replace(found, variant="fixed")


def with_parameters(step: Step) -> Step:
    """A step that computes alone, of four gradients."""
    start = step.series["backward_start_ns"][0]
    ready = [start + n * 50 * MS for n in range(1, 5)]
    return msgspec.structs.replace(step, series=dict(step.series) | {"param_ready_ns": ready, "param_bytes": [1000] * 4})


CAPS = (
    (0.004, ((200, 400),), 500),
    (0.002, ((100, 200), (200, 300)), 400),
    (0, ((50, 99), (100, 149), (150, 199), (200, 260)), 360),
)
"""(cap in MiB, its buckets, ms of a step)."""


@pytest.fixture
def sweep():
    """Each cap twice, and after each round a step that computes alone."""
    steps = []
    for round_ in range(2):
        for cap, buckets, end in CAPS:
            one = ddp_step(len(steps), buckets=buckets, length=end + 10 * round_)
            steps.append(msgspec.structs.replace(one, scalars={"cap_mib": cap}))
        steps.append(with_parameters(ddp_step(len(steps), buckets=(), alone=1)))
    found = msgspec.structs.replace(record([steps, steps]), variant="bucket-sweep")
    return msgspec.structs.replace(found, runs=found.runs | {"link": link_run()})


def link_run():
    """All-reduces that take 10 ms and 50 µs a byte."""
    steps = [
        Step(n, 0, 0, MS, spans=spans(("all_reduce", "comm", 0, 1)), scalars={"seconds": 0.01 + size * 50e-6},
             counts={"bytes": size})
        for n, size in enumerate((100, 1000, 4000))
    ]  # fmt: skip
    return run_of([steps, steps])


@pytest.mark.parametrize("name", [name for name in MINE if name != "bucket-sweep"])
def test_every_figure_prints_its_provenance_and_says_in_words_what_it_shows(name, broken, fixed):
    picture = figure(name)(broken, fixed)
    label = broken.provenance.label()
    assert any(label in text.get_text() for text in picture.figure.texts)
    assert label in picture.alt and "broken" in picture.alt and "fixed" in picture.alt
    assert picture.png().startswith(b"\x89PNG")


def test_the_sweep_prints_its_provenance_and_what_is_simulated_in_it(sweep):
    picture = bucket_sweep(sweep)
    assert any(sweep.provenance.label() in text.get_text() for text in picture.figure.texts)
    axis = picture.figure.axes[0]
    legend = [text.get_text() for text in axis.get_legend().get_texts()]
    assert any(text.startswith("simulated: buckets that queue") for text in legend)
    assert any("measured, median and range of 2" in text for text in legend)
    assert "best 4 collectives, 365 ms, one 505 ms" in picture.alt
    ticks = [text.get_text().split("\n") for text in axis.get_xticklabels()]
    assert ticks[::2] == [["1", "all in one"], ["4", "one a parameter"]]
    assert picture.png().startswith(b"\x89PNG")


def test_a_step_can_be_chosen_by_its_number_and_the_whole_run_too(broken):
    one, another, whole = (compute_over_comm(broken, step=of).figure.axes[0] for of in (None, 3, "all"))
    assert "the middle one" in one.get_title("left") or "the middle one" in one.get_title(loc="left")
    assert "step 3" in another.get_title(loc="left") and "5 steps" in whole.get_title(loc="left")
    assert len(whole.collections) == 5 * len(one.collections)
    assert Lab(overlap.SPEC).figure("compute-over-comm", broken, step=3).alt == compute_over_comm(broken, step=3).alt


def test_numbers_of_collectives_can_be_left_out(fixed):
    with_them, without = (compute_over_comm(fixed, numbers=wanted).figure.axes[0].texts for wanted in (True, False))
    assert [text.get_text() for text in with_them] == ["0", "1", "2", "3"] * 2 and list(without) == []


@pytest.mark.parametrize(("step", "message"), [(99, "no step 99; give a number from 0 to 4"), ("none", "no step 'none'")])
def test_a_step_that_is_not_there_is_refused(broken, step, message):
    with pytest.raises(UsageError, match=message):
        compute_over_comm(broken, step=step)


def test_a_choice_that_a_figure_does_not_have_is_refused(broken):
    with pytest.raises(UsageError, match="exposure has no choice step"):
        Lab(overlap.SPEC).figure("exposure", broken, step=1)


def test_records_that_lack_what_is_drawn_are_refused_by_name(broken):
    with pytest.raises(UsageError, match="broken is of one bucket size"):
        bucket_sweep(broken)
    with pytest.raises(UsageError, match="no collective was timed"):
        exposure_bars(record(same_on(2, buckets=())))


def test_bars_end_where_the_step_does(broken):
    axis = exposure_bars(broken).figure.axes[0]
    ends = [path.vertices[:, 0].max() for bar in axis.collections for path in bar.get_paths()]
    assert max(ends) == pytest.approx(500) and "200 ms exposed" in exposure_bars(broken).alt


def test_odd_numbers_of_ranks_and_records_are_drawn():
    five = record(same_on(5, steps=2, buckets=((200, 210),)))
    assert len(compute_over_comm(five).figure.axes[0].get_yticklabels()) == 5
    assert len(compute_over_comm(five, five, five).figure.axes) == 3
