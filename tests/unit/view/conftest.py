import pytest
from laid_out import faults_of
from said import not_held

from labkit.view.picture import Picture

from ..builders import in_batches, record_of, run_of, shares, shuffled, span


def with_measures(run):
    """The same run with losses and spans, as a real one has them."""
    import msgspec

    ranks = []
    for log in run.ranks:
        steps = []
        for step in log.steps:
            start = step.start_ns
            spans = [
                msgspec.structs.replace(span(start, start + 10, "data"), name="fetch"),
                msgspec.structs.replace(span(start + 10, start + 40), name="forward"),
                msgspec.structs.replace(span(start + 40, start + 90), name="backward"),
                msgspec.structs.replace(span(start + 50, start + 80, "comm"), name="all_reduce"),
            ]
            scalars = {"loss_local": 2.0 / (1 + step.step), "batch_samples": len(step.digests["train"])}
            steps.append(msgspec.structs.replace(step, spans=spans, scalars=scalars))
        ranks.append(msgspec.structs.replace(log, steps=tuple(steps)))
    return msgspec.structs.replace(run, ranks=tuple(ranks))


@pytest.fixture
def broken():
    same = in_batches(shuffled(40, 1), 8)
    return record_of(with_measures(run_of([[same] * 4], dataset_size=40, batch_size=8)))


@pytest.fixture
def fixed():
    import msgspec

    reading = [in_batches(share, 8) for share in shares(shuffled(40, 2), 4)]
    record = record_of(with_measures(run_of([reading], dataset_size=40, batch_size=8)))
    return msgspec.structs.replace(record, variant="fixed")


@pytest.fixture(autouse=True)
def alt_texts_say_what_is_drawn(monkeypatch):
    """Whatever figure a test draws, each number of its alt text stands in it, and its legends and titles can be read."""
    from labkit.view.figures import common

    def checked(figure, alt):
        picture = Picture(figure, alt)
        assert not (unreadable := faults_of(figure)), unreadable
        assert not (missing := not_held(picture)), f"{missing} said and not drawn: {alt}"
        return picture

    monkeypatch.setattr(common, "Picture", checked)
