"""The oracles of lab 06: bytes kept, exact and by name; traffic by the paper, dispatched and on the wire; one loss."""

import importlib.util
import os
import sys

import numpy as np
import pytest
import torch
from asking import told_in_time

import labkit
from labkit.detect.sharding.measures import (
    kept,
    leftovers,
    loss_gap,
    losses,
    misses,
    operations,
    paper_bytes,
    paper_state,
    peak_bytes,
    sent_bytes,
    strategy_runs,
    wire,
)
from labkit.detect.sharding.summary import psi, stage_table, units
from labkit.detect.sharding.ways import ways
from labkit.errors import UsageError
from labkit.labs import spec
from labkit.labs.zero_stages import Config, deepspeed, plans
from labkit.labs.zero_stages.exercise import CASES
from labkit.ranks.launch import launch
from labkit.theory.strategies import STRATEGIES
from labkit.theory.zero import GB, cheapest

LAB = labkit.lab("zero-stages")
HAS_DEEPSPEED = importlib.util.find_spec("deepspeed") is not None
SMALL = {"layers": 2, "hidden": 48, "steps": 20}
TORCH = ("ddp", "ddp-default", "zero1", "fsdp2-no-reshard", "fsdp2-reshard", "hsdp")
BY_DEEPSPEED = ("deepspeed-1", "deepspeed-2", "deepspeed-3")

with_deepspeed = pytest.mark.skipif(not HAS_DEEPSPEED and not os.environ.get("CI"), reason="make setup-deepspeed")
each = pytest.mark.parametrize("name", [*TORCH, *(pytest.param(n, marks=with_deepspeed) for n in BY_DEEPSPEED)])
each_of_torch = pytest.mark.parametrize("name", TORCH)

pytestmark = [pytest.mark.ranks, pytest.mark.timeout(240)]


@pytest.fixture(scope="module")
def four(run):
    """Every strategy on 4 ranks of 2 hosts, from one record."""
    return run("compare", ranks=4, link="1gbit", **SMALL)


@pytest.fixture(scope="module")
def three(run):
    """On 3 ranks, which do not divide the rows, in float64, without hosts."""
    return run("compare", ranks=3, hosts=1, dtype="float64", layers=2, hidden=48, steps=6)


def after_backward(record, name):
    """Bytes by rank and category, divided by Ψ."""
    run = strategy_runs(record)[name]
    return kept(run)["backward_end"] / psi(run)


# ---- What is kept


@each
def test_what_is_alive_is_what_the_implementations_own_partition_says_to_the_byte(four, name):
    assert misses(strategy_runs(four)[name]) == dict.fromkeys(misses(strategy_runs(four)["ddp"]), 0)


@each_of_torch
def test_it_is_exact_too_where_rows_do_not_divide_by_the_ranks(three, name):
    if name != "hsdp":
        assert sum(misses(strategy_runs(three)[name]).values()) == 0


@each
def test_all_beyond_the_papers_formula_has_a_name_and_the_sum_is_exact(four, name):
    run = strategy_runs(four)[name]
    for rank in range(4):
        left = sum(one.num_bytes for one in leftovers(run, rank))
        assert paper_state(run).total + left == kept(run)["backward_end"][rank].sum()


def test_ddp_and_fsdp2_and_hsdp_keep_what_the_paper_says_and_adams_counters(four):
    """DDP as it comes keeps 4 bytes a parameter more: gradients, and buckets that hold copies of them."""
    expected = {"ddp": 16, "ddp-default": 20, "fsdp2-reshard": 16 / 4, "hsdp": 16 / 2}
    for name, formula in expected.items():
        run = strategy_runs(four)[name]
        counters = 4 * int(run.fact("num_tensors")) / psi(run)
        assert after_backward(four, name).sum(axis=1) == pytest.approx([formula + counters] * 4, abs=1e-12)


def test_without_resharding_the_whole_weights_lie_beside_the_shares_from_forward_to_backward(four):
    run = strategy_runs(four)["fsdp2-no-reshard"]
    by_instant = {instant: bars.sum(axis=1) / psi(run) for instant, bars in kept(run).items()}
    assert by_instant["forward"] - by_instant["init"] == pytest.approx([4] * 4)
    assert by_instant["backward_end"] == pytest.approx(after_backward(four, "fsdp2-reshard").sum(axis=1))
    resharded = strategy_runs(four)["fsdp2-reshard"]
    assert (kept(resharded)["forward"] == kept(resharded)["init"]).all()


def test_zero_redundancy_optimizer_divides_whole_tensors_unevenly_and_nothing_is_lost(four):
    state = after_backward(four, "zero1")[:, 2]
    assert len(set(state)) > 1
    run = strategy_runs(four)["zero1"]
    assert kept(run)["backward_end"][:, 2].sum() == 8 * psi(run) + 4 * int(run.fact("num_tensors"))


@with_deepspeed
def test_deepspeed_1_and_2_keep_the_same_and_a_second_copy_of_their_share(four):
    one, two = (after_backward(four, name) for name in ("deepspeed-1", "deepspeed-2"))
    assert (one == two).all()
    assert one[:, 0] == pytest.approx([4] * 4, abs=0.001)
    assert one[:, 2] == pytest.approx([12 / 4] * 4, abs=0.001)
    assert (one[:, 1] >= 4 / 4).all() and (one[:, 1] < 4 / 4 + 1).all()  # whole tensors at the borders


@with_deepspeed
def test_deepspeed_3_keeps_twenty_bytes_of_a_share_and_its_bucket(four):
    assert after_backward(four, "deepspeed-3")[:, :3].sum(axis=1) == pytest.approx([20 / 4] * 4, abs=0.001)
    assert after_backward(four, "deepspeed-3")[:, 4] == pytest.approx([1] * 4, abs=0.001)


@with_deepspeed
def test_stage_3_as_deepspeed_sets_it_keeps_more_than_stage_2_on_a_small_model(lab, run, four):
    found = run("deepspeed-defaults", ranks=4, hosts=1, **{**SMALL, "steps": 5}).run
    assert sum(misses(found).values()) == 0
    assert kept(found)["init"][:, 3] / psi(found) == pytest.approx([4] * 4)
    assert peak_bytes(found).max() > peak_bytes(strategy_runs(four)["deepspeed-2"]).max()


@with_deepspeed
def test_deepspeed_would_clip_to_a_norm_of_one_unless_it_is_told_not_to(tmp_path):
    def program(context):
        from labkit.labs.zero_stages import deepspeed as ours
        from labkit.labs.zero_stages.strategies import Place
        from labkit.workloads.gpt import GPTShape, build_gpt

        told, clips = ours.settings_of, []
        for without in ((), ("gradient_clipping",)):
            ours.settings_of = lambda *a, without=without, **k: {
                name: value for name, value in told(*a, **k).items() if name not in without
            }
            model = build_gpt(GPTShape(layers=1, hidden=8, heads=1, seq=4), seed=0, attention="sdpa", recompute=False)
            clips.append(ours.prepare_deepspeed(1, model, Place(1, 1, 1e-3, context.device)).model.gradient_clipping())
        return clips

    assert launch(program, None, ranks=1, folder=tmp_path).values == ([0.0, 1.0],)


# ---- What is sent

DISPATCHED = {
    "ddp": {"all_reduce": 1.0},
    "ddp-default": {"all_reduce": 1.0},
    "zero1": {"all_reduce": 1.0, "broadcast": 1.0},
    "fsdp2-no-reshard": {"all_gather": 1.0, "reduce_scatter": 1.0},
    "fsdp2-reshard": {"all_gather": 2.0, "reduce_scatter": 1.0},
    "hsdp": {"all_gather": 2.0, "reduce_scatter": 1.0, "all_reduce": 0.5},
    "deepspeed-1": {"all_reduce": 1.0, "all_gather": 1.0},
    "deepspeed-2": {"all_reduce": 1.0, "all_gather": 1.0},
    "deepspeed-3": {"all_gather": 2.0, "reduce_scatter": 1.0},
}
"""Passes over all elements, by operation."""


@each
def test_every_element_is_dispatched_as_often_as_the_implementation_needs(four, name):
    run = strategy_runs(four)[name]
    passes = {op.kind: op.elements / psi(run) for op in operations(run) if op.elements > 0.01 * psi(run)}
    assert passes == pytest.approx(DISPATCHED[name], abs=1e-3)


def test_in_units_of_the_paper_that_is_2_or_3_where_the_implementation_does_what_the_paper_says(four):
    sent = {name: units(run, sent_bytes(run)) for name, run in strategy_runs(four).items() if name in TORCH}
    expected = {"ddp": 2, "ddp-default": 2, "zero1": 3, "fsdp2-no-reshard": 2, "fsdp2-reshard": 3, "hsdp": 8 / 3}
    assert sent == pytest.approx(expected, abs=1e-9)
    for name in ("ddp", "fsdp2-no-reshard", "fsdp2-reshard", "hsdp"):
        run = strategy_runs(four)[name]
        assert sent_bytes(run) == pytest.approx(paper_bytes(run), rel=1e-9)


def test_rows_that_do_not_divide_are_padded_and_the_padding_travels(three):
    run = strategy_runs(three)["fsdp2-reshard"]
    rows = [256, 32, *([48, 48, 48, 48, 144, 48, 192, 48] * 2), 48, 48, 256]
    rest = [48, 48, *([1, 1, 1, 1, 48, 48, 48, 192] * 2), 1, 1, 48]
    assert sum(r * c for r, c in zip(rows, rest, strict=True)) == psi(run)
    padded = sum(-(-r // 3) * 3 * c for r, c in zip(rows, rest, strict=True))
    passes = {op.kind: op.elements for op in operations(run)}
    assert passes == {"all_gather": 2 * padded, "reduce_scatter": padded}
    assert padded > psi(run)


@each_of_torch
def test_on_the_wire_gloos_reduce_scatter_is_an_all_reduce(four, name):
    if four.network.way == "emulated":
        pytest.skip(four.network.reason)
    counted = wire(strategy_runs(four)[name])
    gloo = {"ddp": 2, "ddp-default": 2, "zero1": 3, "fsdp2-no-reshard": 3, "fsdp2-reshard": 4, "hsdp": 10 / 3}
    assert 1 <= units(strategy_runs(four)[name], counted.rank_bytes) / gloo[name] < 1.09  # headers


def test_between_hosts_hsdp_sends_a_third_of_what_fsdp_sends(four):
    if four.network.way == "emulated":
        pytest.skip(four.network.reason)
    link = {name: wire(run).link_bytes for name, run in strategy_runs(four).items()}
    assert 2.8 < link["fsdp2-reshard"] / link["hsdp"] < 3.2


# ---- What is learnt


@each
def test_every_strategy_follows_the_loss_of_one_process(four, name):
    run = strategy_runs(four)[name]
    assert len(losses(run)) == 20
    assert loss_gap(four, run) < 2e-7


@each_of_torch
def test_in_float64_the_weights_are_those_of_one_process(three, name):
    if name != "hsdp":
        own, alone = strategy_runs(three)[name].arrays["weights"], three.runs["single"].arrays["weights"]
        assert np.abs(own - alone).max() < 1e-12


# ---- Which stage


def test_broken_sends_more_than_a_stage_that_fits_and_is_found_where_the_link_is_slow(lab, run):
    how = {"ranks": 4, "hosts": 2, "link": "20mbit", "layers": 2, "hidden": 24, "steps": 8}
    verdict = lab.judge(run("broken", seed=0, **how))["wrong-stage"]
    assert verdict.evidence["sent"].value > 1.3 * verdict.evidence["sent_by_fsdp2_no_reshard"].value
    assert told_in_time(lambda seed: run("broken", seed=seed, **how), "wrong-stage").waste > 0.05


def test_fixed_is_the_cheapest_that_fits_and_is_clear(lab, run):
    record = run("fixed", ranks=3, hosts=1, layers=2, hidden=24, steps=5)
    assert record.run.fact("strategy") == "fsdp2-no-reshard"
    assert lab.judge(record)["wrong-stage"].status == "clear"
    assert [verdict.detector for verdict in lab.judge(record).found] == []


@pytest.mark.parametrize(
    ("ranks", "room", "expected"),
    [(4, 0, "fsdp2-no-reshard"), (3, 0, "fsdp2-no-reshard"), (8, 0, "fsdp2-no-reshard"), (4, 17, "ddp"), (4, 11, "zero1"),
     (4, 6.9, "fsdp2-reshard"), (4, 1, "fsdp2-reshard"), (1, 0, "ddp")],
)  # fmt: skip
def test_the_choice_follows_the_room(ranks, room, expected):
    assert plans.choice(Config(room=room), ranks) == expected


def test_on_one_rank_nothing_is_sent_and_nothing_is_shared(lab, run):
    record = run("broken", ranks=1, layers=1, hidden=24, steps=4)
    assert lab.judge(record)["wrong-stage"].status == "not_applicable"
    assert loss_gap(record, record.run) == 0


def test_on_an_emulated_link_the_same_is_counted_and_the_times_are_simulated(lab, run):
    settings = {"layers": 1, "hidden": 24, "steps": 5, "emulate_link": True, "link": "1gbit"}
    record = run("hsdp", ranks=4, hosts=2, **settings)
    passes = {op.kind: (op.elements / psi(record.run), op.hosts) for op in operations(record.run)}
    assert passes == {"all_gather": (2, 1), "reduce_scatter": (1, 1), "all_reduce": (0.5, 2)}
    assert lab.measures(record)["step_time"].source == "simulated" and wire(record.run) is None
    assert any("emulated" in note for note in stage_table(record).notes)


# ---- Traps


def test_an_optimizer_made_first_knows_no_parameter_and_moves_no_weight_and_keeps_the_old_ones(lab, run):
    record = run("optimizer-first", ranks=2, layers=1, hidden=24, steps=4)
    verdict = lab.judge(record)["optimizer-before-sharding"]
    assert verdict.status == "found"
    assert record.network is None, "no host is made that the run does not use"
    assert verdict.evidence["parameters_known"].value == 0 and verdict.evidence["largest_move"].value == 0.0
    parameters = kept(record.run)["step"][:, 0] / psi(record.run)
    assert parameters == pytest.approx([4 + 4 / 2] * 2, abs=0.1)  # the old whole ones, and the shards


def test_under_ddp_the_order_does_not_matter(tmp_path):
    def program(context):
        import torch
        from torch.nn.parallel import DistributedDataParallel

        model = torch.nn.Linear(4, 4)
        optimizer = torch.optim.Adam(model.parameters())
        before = model.weight.detach().clone()
        wrapped = DistributedDataParallel(model)
        wrapped(torch.ones(2, 4)).sum().backward()
        optimizer.step()
        return float((model.weight - before).abs().max())

    assert min(launch(program, None, ranks=2, folder=tmp_path).values) > 1e-4


def test_under_fsdp1_torchs_clip_gives_each_rank_its_own_norm(lab, run):
    record = run("norm-of-shards", ranks=2, layers=1, hidden=24, steps=4)
    assert lab.judge(record)["per-rank-norm"].status == "found"


def test_fsdp2s_clip_gives_all_ranks_one_process_norm(tmp_path):
    def program(context):
        import torch
        from torch.distributed.fsdp import fully_shard

        torch.manual_seed(0)
        model = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
        plain = torch.nn.Sequential(torch.nn.Linear(8, 8), torch.nn.Linear(8, 8))
        plain.load_state_dict(model.state_dict())
        x = torch.arange(16.0).view(2, 8)
        plain(x).square().sum().backward()
        fully_shard(model)
        model(x).square().sum().backward()
        clip = torch.nn.utils.clip_grad_norm_
        return float(clip(model.parameters(), 1.0).full_tensor()), float(clip(plain.parameters(), 1.0))

    for sharded, plain in launch(program, None, ranks=2, folder=tmp_path).values:
        assert sharded == pytest.approx(plain, rel=1e-6)


def test_fully_shard_does_not_broadcast(lab, run):
    record = run("seeds-differ", ranks=3, layers=1, hidden=24, steps=4)
    verdict = lab.judge(record)["unequal-init"]
    assert verdict.status == "found" and verdict.evidence["initial_weights"].value == 3
    wrapped = {log.digests["wrapped_weights"] for log in record.run.ranks}
    assert len(wrapped) == 1  # all ranks gather the same chimera


# ---- Several micro-batches, and a policy of mixed precision


def test_each_strategy_gathers_and_reduces_as_often_as_the_formula_says_and_holds_what_it_says(run):
    counted = ways(run("accumulate", ranks=2, layers=1, hidden=24, steps=4).run)
    assert [(way.strategy, way.last_alone) for way in counted] == [
        (name, last) for name in ("ddp", "zero1", "fsdp2-no-reshard", "fsdp2-reshard") for last in (False, True)
    ]
    for way in counted:
        assert way.seen == way.by_formula, way
    of = {(way.strategy, way.last_alone): way.seen for way in counted}
    assert (of["fsdp2-reshard", False].gathered, of["fsdp2-reshard", False].reduced) == (4 * 2 * 4, 4 * 4)
    assert of["fsdp2-reshard", True].gradients == 2 * of["fsdp2-reshard", False].gradients, "whole ones, on two ranks"


def test_a_policy_halves_what_is_gathered_and_if_told_what_is_reduced(run):
    whole, gathered, both = ways(run("mixed-precision", ranks=2, layers=1, hidden=24, steps=4).run)
    assert all(way.seen == way.by_formula for way in (whole, gathered, both))
    assert gathered.seen.gathered == whole.seen.gathered / 2 and gathered.seen.reduced == whole.seen.reduced
    assert both.seen.gathered == whole.seen.gathered / 2 and both.seen.reduced == whole.seen.reduced / 2


# ---- What cannot be


def test_without_deepspeed_the_comparison_says_so_and_runs_the_rest(monkeypatch):
    monkeypatch.setattr(deepspeed, "missing", lambda: deepspeed.MISSING)
    planned = plans.plan("compare", Config(), 3)
    names = ["ddp", "ddp-default", "zero1", "fsdp2-no-reshard", "fsdp2-reshard"]
    assert [plan.role for plan in planned] == [*names, "fast", "single"]
    assert "deepspeed-2: DeepSpeed is not installed" in planned[0].task.left_out and "hsdp" in planned[0].task.left_out
    for name in (*BY_DEEPSPEED, "deepspeed-defaults"):
        with pytest.raises(UsageError, match="make setup-deepspeed"):
            plans.plan(name, Config(), 4)


def test_what_was_left_out_stands_under_the_table(three):
    notes = " ".join(stage_table(three).notes)
    assert "hsdp needs two groups" in notes and "deepspeed-1: DeepSpeed" in notes
    assert set(strategy_runs(three)) == {"ddp", "ddp-default", "zero1", "fsdp2-no-reshard", "fsdp2-reshard"}


@pytest.mark.parametrize(
    ("variant", "config", "ranks", "message"),
    [
        ("hsdp", Config(), 3, "hsdp needs two groups or more of two ranks or more; given 3 ranks and 2 replicas"),
        ("hsdp", Config(replicas=1), 4, "given 4 ranks and 1 replicas"),
        ("deepspeed-1", Config(dtype="float64"), 4, "DeepSpeed takes no float64"),
        ("compare", Config(only="zero2"), 4, "no strategy 'zero2'"),
        ("compare", Config(only="hsdp"), 3, "none of these can run here: hsdp"),
        ("broken", Config(hidden=50, heads=4), 4, "hidden must be a multiple of heads; given 50 and 4"),
    ],
)
def test_what_cannot_be_is_refused_before_anything_starts(variant, config, ranks, message):
    with pytest.raises(UsageError, match=message):
        plans.plan(variant, config, ranks)


def test_a_strategy_in_place_of_a_variants_name_is_refused(lab):
    with pytest.raises(UsageError, match="lab.check"):
        lab.run(lambda case: 1, ranks=2)


# ---- The exercise


def right(case):
    best = cheapest(case.params, case.devices, case.memory_gb * GB, kept="mixed Adam", reserve_bytes=case.reserve_gb * GB)
    return None if best is None else best.stage


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_each_wrong_answer_is_explained(lab, case):
    for wrong in {0, 1, 2, 3, None} - {right(case)}:
        (finding,) = lab.check(lambda c, wrong=wrong: wrong if c.name == case.name else right(c)).findings
        assert finding.startswith(f"case {case.name} (") and len(finding) > 60


@pytest.mark.parametrize(
    ("answer", "message"),
    [(lambda case: "2", "return 0, 1, 2, 3 or None; given '2'"), (lambda case: True, "given True"),
     (lambda case: 1 / 0, "ZeroDivisionError: division by zero (case "), (lambda case: sys.exit(0), "sys.exit(0)"),
     (lambda case: torch.ones(2), "given tensor([1., 1.])"), (lambda case: 2.0, "given 2.0")],
)  # fmt: skip
def test_an_answer_of_another_kind_is_refused(lab, answer, message):
    (finding,) = lab.check(answer).findings
    assert message in finding


def test_the_strategies_of_the_spec_are_those_that_are_known():
    assert set(STRATEGIES) <= {variant.name for variant in spec("zero-stages").variants}
