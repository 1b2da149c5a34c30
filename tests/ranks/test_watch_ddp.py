"""A DDP script of a user's, watched: what is counted, what is timed, and that nothing of the training changes."""

import ddp_programs as programs
import pytest

from labkit.detect import detector
from labkit.detect.overlap import measures
from labkit.ranks.launch import launch
from labkit.record.schema import Provenance, Record
from labkit.record.store import read_run

pytestmark = pytest.mark.ranks


def watched(folder, program, config=None, *, ranks=2):
    launched = launch(program, config, ranks=ranks, folder=folder)
    run = read_run(folder, "variant", launched.wall_s)
    provenance = Provenance(source="measured", device="a processor", backend="gloo", world_size=ranks, date="2026-01-01")
    return launched.values, Record("overlap", "own", {}, provenance, {"variant": run})


def test_buckets_are_as_many_as_torchs_rules_make(folder):
    """By (tensors, MiB each, bucket_cap_mb): collectives from the second step on; the first step has one."""
    expected = {(16, 4, None): 4, (64, 1, None): 4, (16, 4, 25): 3, (64, 1, 25): 3, (1, 64, None): 1, (12, 1, 25): 1}
    (found, other), _ = watched(folder, programs.count_buckets, list(expected))
    assert found == other == {of: (1, count) for of, count in expected.items()}


@pytest.mark.parametrize("ranks", [2, 3])
def test_watching_changes_no_bit_of_the_weights(folder, ranks):
    values, _ = watched(folder, programs.same_bits, ranks=ranks)
    for of_rank in values:
        for way in {of[:2] for of in of_rank}:
            assert len({weights for *of, weights in of_rank if tuple(of) == way}) == 1, way


def test_what_watches_a_module_does_not_hold_its_process_group(folder):
    """Its callbacks are let go on the group's own thread: were one the last to hold the group, the process would abort."""
    values, _ = watched(folder, programs.reaches_its_group)
    assert values[0] == values[1] == (False, False, True)


def test_a_script_without_a_probe_gets_its_steps_from_its_optimizer(folder):
    (seen, _), record = watched(folder, programs.a_users_script)
    assert seen == "yes"
    log = record.run.ranks[0]
    assert [step.counts["backwards"] for step in log.steps] == [2, 2, 2]
    assert all(step.counts["reductions"] == step.counts["forwards"] == 2 for step in log.steps)
    assert {span.name for span in log.steps[1].spans} == {"forward", "backward", "wait", "all_reduce", "optimizer"}
    gradient_bytes = 4 * (8 * 16 + 16 + 16 * 16 + 16 + 16 * 3 + 3)
    assert log.head.facts["ddp_gradient_bytes"] == gradient_bytes
    assert log.steps[2].counts["all_reduce_bytes"] == 2 * gradient_bytes
    assert detector("missing-no-sync")(record).status == "found"
    for step in log.steps:
        for ready, end in zip(step.series["bucket_ready_ns"], step.series["bucket_end_ns"], strict=True):
            assert step.start_ns < ready <= end <= step.end_ns


@pytest.mark.parametrize(("registered", "sees"), [("after", "yes"), ("before", "no: the script had registered")])
def test_a_hook_of_the_scripts_own_is_timed_or_said_not_to_be(folder, registered, sees):
    values, record = watched(folder, programs.a_users_script, registered)
    assert all(seen.startswith(sees) for seen in values)
    log = record.run.ranks[0]
    assert measures.weights_equal_on_ranks(record.run), "the gradients were reduced"
    assert [step.counts["reductions"] for step in log.steps] == [2, 2, 2]
    if registered == "after":
        assert measures.buckets(record.run) is not None
        assert any(event.fields.get("hook") == "fp16_compress_hook" for event in log.events)
    else:
        assert measures.buckets(record.run) is None
        found = detector("exposed-communication")(record)
        assert (found.status, found.reason) == ("not_applicable", "no-collective-timed")


@pytest.mark.parametrize("ranks", [1, 2])
def test_parameters_that_are_left_out_are_seen_and_named(folder, ranks):
    _, record = watched(folder, programs.leaves_a_layer_out, ranks=ranks)
    steps = record.run.ranks[0].steps
    assert [step.series["unused_params"] for step in steps] == [[2]] * 4, "and a pass without gradients is no pass"
    assert detector("needless-find-unused")(record).status == "clear"
    names = {e.fields["names"] for e in record.run.ranks[0].events if e.name == "unused_parameters"}
    assert names == {"other.weight, other.bias", "one.weight, one.bias"}


@pytest.mark.parametrize(("ranks", "late"), [(2, 1), (4, 1)])
def test_a_rank_that_is_slow_in_its_own_backward_pass_is_named_though_all_passes_take_as_long(folder, ranks, late):
    took, record = watched(folder, programs.slow_in_backward, (late, 0.2), ranks=ranks)
    for of_step in list(zip(*took, strict=True))[2:]:
        assert min(of_step) > 0.15, "every rank's backward() waits for the slow one"
    found = detector("late-rank")(record)
    assert found.status == "found", found
    assert (found.reason, found.numbers["rank"]) == ("rank-late-in-its-backward-pass", late)


def test_ranks_without_a_slow_one_are_not_accused(folder):
    _, record = watched(folder, programs.slow_in_backward, (-1, 0.0), ranks=2)
    assert detector("late-rank")(record).status in ("clear", "inconclusive")


def test_one_rank_and_a_backward_pass_that_raises_are_no_trouble(folder):
    _, record = watched(folder, programs.survives_an_error_in_backward, ranks=1)
    assert sum(step.counts.get("backwards", 0) for step in record.run.ranks[0].steps) >= 1
