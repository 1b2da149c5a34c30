"""The oracles of lab 08: real kills, and a run that goes on to the very bits of the one that nothing interrupts."""

from __future__ import annotations

import os
import random
import signal
import threading

import psutil
import pytest
from asking import statuses, value

import labkit
from labkit.detect.crash.measures import attempts, crashes, losses, states_not_restored
from labkit.errors import RankFailed, RankTimeout, UsageError
from labkit.labs.crash_recovery import Config
from labkit.labs.crash_recovery.training import Training
from labkit.ranks import forkserver
from labkit.ranks.faults import Fault
from labkit.record.store import read_record
from labkit.theory.departures import departs_at
from labkit.workloads.checkpoint_files import verify
from labkit.workloads.resumable import random_state, set_random_state

pytestmark = pytest.mark.ranks

LAB = labkit.lab("crash-recovery")
QUICK = {"num_samples": 301, "global_batch": 50, "epochs": 3}
"""7 steps an epoch, the last of one sample: neither 2, 3 nor 4 ranks divide 301, and some have none in it."""


def is_to_the_bit(record) -> bool:
    return value(record, "departs_at") == "never" and value(record, "weights_equal_uninterrupted") is True


# full: to the bit, whatever is killed, and when


@pytest.mark.parametrize(
    ("ranks", "how", "resumed"),
    [
        (1, {"kill_step": 13}, 10),
        (2, {"kill_step": 0}, 0),  # before the first checkpoint
        (2, {"kill_step": 20, "kill_rank": 1}, 20),  # the last step
        (2, {"kill_step": 8, "interval": 7}, 7),  # a checkpoint between two epochs
        (3, {"kill_step": 17, "kill_rank": 2, "interval": 4}, 16),
        (4, {"kill_step": 12}, 10),
        (2, {"kill_step": 9, "kill": "save"}, 5),  # the save after step 9 does not come about
        (3, {"kill_step": 11, "kill": "all"}, 10),
        (2, {"kill_step": 11, "kill": "node"}, 10),
    ],
    ids=str,
)
def test_full_state_goes_on_to_the_bit(run, ranks, how, resumed):
    record = run("fixed", ranks=ranks, **how)
    assert is_to_the_bit(record)
    assert (value(record, "restarts"), value(record, "resumed_at")) == (1, resumed)
    done = 10 if how.get("kill") == "save" else how["kill_step"]
    assert value(record, "lost_steps") == done - resumed
    # no rank went on with gradients that had not been summed
    assert all(log.steps[-1].step <= done for logs in record.run.earlier for log in logs if log.steps)
    # a run from scratch has nothing to compare its state with, and that of a killed save was told before it
    assert states_not_restored(record.run) in ([], None)


def test_a_rank_that_hangs_is_a_crash_once_a_collective_waits_no_longer(run):
    """The other ranks' collective raises, and what follows is a restart like any other."""
    record = run("fixed", kill="hang", kill_step=12, timeout_s=4.0)
    assert is_to_the_bit(record) and value(record, "restarts") == 1
    assert value(record, "resumed_at") <= 10, "the newest checkpoint, or one before it where a rank came late before that"


def test_without_a_timeout_a_rank_that_hangs_is_named_at_the_deadline_and_nothing_is_restarted():
    with pytest.raises(RankTimeout) as told:
        LAB.run("fixed", ranks=2, kill="hang", kill_step=0, timeout_s=0.0, deadline_s=8.0, device="cpu", **QUICK)
    assert "had not finished after 8 s" in str(told.value) and "rank 0 waiting" in str(told.value)


def test_the_crash_that_was_asked_for_is_in_the_record(run):
    record = run("fixed", ranks=3, kill_step=11, kill="all")
    assert attempts(record.run)[0].killed_ranks == [0, 1, 2]
    again = read_record(record.folder)
    assert LAB.measures(again) == LAB.measures(record) and statuses(again) == statuses(record)


def test_a_second_crash_while_the_first_is_being_recovered_from(run):
    faults = (
        Fault(kind="kill", rank=0, step=12),
        Fault(kind="kill", rank=1, step=0, at="load", attempt=1),
        Fault(kind="kill", rank=1, step=16, attempt=2),
    )
    record = LAB.run("fixed", ranks=2, kill="none", faults=faults, device="cpu", **QUICK)
    assert is_to_the_bit(record) and value(record, "restarts") == 3
    assert [(crash.done, crash.resumed_at) for crash in crashes(record.run)] == [(12, 10), (16, 15)]


def test_a_kill_from_outside_is_recovered_from_too(run):
    """No fault of labkit's: the process is found and killed, while a rank waits."""

    def kill_one():
        while not stop.is_set():
            for process in psutil.Process(forkserver.server_pid()).children():
                if process.pid not in before and waiting():
                    os.kill(process.pid, signal.SIGKILL)
                    return
            stop.wait(0.01)

    def waiting():
        found = list(folder.glob("variant/rank-00000.jsonl"))
        return bool(found) and b'"fault"' in found[0].read_bytes()

    folder, stop = labkit.record.store.new_folder(None, "outside"), threading.Event()
    before = {process.pid for process in psutil.Process(forkserver.server_pid()).children()}
    killer = threading.Thread(target=kill_one)
    killer.start()
    try:
        pause = Fault(kind="delay", rank=0, step=12, seconds=3.0)
        record = LAB.run("fixed", ranks=2, kill="none", faults=(pause,), record_dir=folder, device="cpu", **QUICK)
    finally:
        stop.set()
        killer.join()
    assert value(record, "restarts") == 1 and value(record, "resumed_at") == 10 and is_to_the_bit(record)


def test_a_run_that_nothing_kills_is_not_changed_by_its_checkpoints(run):
    record = run("fixed", kill="none")
    assert is_to_the_bit(record) and value(record, "restarts") == 0
    assert statuses(record)["lost-work"] == "not_applicable"


# what each state is for


@pytest.mark.parametrize(
    "state",
    ["optimizer", "scheduler", "scaler", "place", "rng-python", "rng-numpy", "rng-torch", "rng-per-rank", "rng-after-iter"],
)
def test_left_out_a_state_is_missed_at_the_predicted_step(run, state):
    record = run("fixed", leave_out=state, kill_step=11, precision="fp16" if state == "scaler" else "fp32")
    config = Config(**record.config)
    predicted = departs_at(state, 10, config, 2, config.total_steps)
    assert predicted is not None and value(record, "departs_at") == f"step {predicted}"
    assert value(record, "weights_equal_uninterrupted") is False
    verdict = LAB.judge(record)["resume-departs"]
    named = {"rng-per-rank": "rng-torch", "rng-after-iter": "rng-torch"}.get(state, state)
    assert verdict.status == "found" and named in verdict.evidence["states_not_restored"].value


@pytest.mark.parametrize(
    ("state", "how"),
    [
        ("scheduler", {"interval": 8, "kill_step": 9}),  # at the end of a period
        ("epoch", {"interval": 7, "kill_step": 8, "epochs": 2}),  # in epoch 0 still
        ("rng-numpy", {"augment": False, "kill_step": 6}),
        ("rng-per-rank", {"ranks": 1, "kill_step": 6}),
    ],
    ids=str,
)
def test_left_out_where_it_plays_no_part_a_state_is_never_missed(run, state, how):
    record = run("fixed", leave_out=state, **how)
    config = Config(**record.config)
    assert departs_at(state, value(record, "resumed_at"), config, record.run.world_size, config.total_steps) is None
    assert is_to_the_bit(record)


@pytest.mark.parametrize(("ranks", "same"), [(2, True), (3, False)])
def test_ddps_buckets_are_summed_in_another_order_after_a_start(run, ranks, same):
    """A sum of two has one order; of three it does not, and the last bits of the weights tell."""
    record = run("fixed", ranks=ranks, leave_out="bucket-order", kill_step=11)
    assert value(record, "weights_equal_uninterrupted") is same
    assert value(record, "weights_gap") < 1e-5


# the other variants


def test_without_a_checkpoint_every_step_is_lost_and_nothing_else(run):
    record = run("broken", kill_step=11)
    assert (value(record, "lost_steps"), value(record, "resumed_at")) == (11, 0) and is_to_the_bit(record)
    verdict = LAB.judge(record)["lost-work"]
    assert verdict.status == "found" and verdict.waste == pytest.approx(11 / 32)
    assert verdict.where.startswith("labkit/labs/crash_recovery/keepers.py:")


def test_weights_and_epoch_alone_go_on_as_another_run(run):
    record = run("model-and-epoch", kill_step=11)
    assert (value(record, "resumed_at"), value(record, "departs_at")) == (7, "step 7")
    missing = LAB.judge(record)["resume-departs"].evidence["states_not_restored"].value
    assert {"optimizer", "scheduler", "rng-torch"} <= set(missing.split(", ")) and "model" not in missing.split(", ")


def test_light_checkpoints_lose_less_and_depart(run):
    record = run("light", kill_step=13, kill_rank=1)
    assert (value(record, "lost_steps"), value(record, "departs_at")) == (1, "step 12")
    whole = run("light", kill_step=11)
    assert value(whole, "resumed_at") == 10 and is_to_the_bit(whole)  # the newest was a full one


@pytest.mark.parametrize("ranks", [2, 3])
def test_on_one_path_all_ranks_but_the_last_writer_get_what_is_not_theirs(run, ranks):
    record = run("one-path", ranks=ranks, kill_step=11)
    verdict = LAB.judge(record)["single-path"]
    assert verdict.status == "found"
    assert (verdict.evidence["contents"].value, verdict.evidence["misled"].value) == (ranks, ranks - 1)
    own, other = losses(record.run), losses(record.runs["uninterrupted"])
    assert sum(own[rank][10] == other[rank][10] for rank in range(ranks)) == 1


def test_a_local_disk_serves_until_its_node_is_lost(run):
    served, lost = run("local-disk", kill="rank", kill_step=11), run("local-disk", kill_step=11)
    assert value(served, "resumed_at") == 10 and is_to_the_bit(served)
    assert statuses(served)["local-disk"] == "inconclusive"
    assert value(lost, "resumed_at") == 0 and value(lost, "lost_steps") == 11
    assert (statuses(lost)["local-disk"], statuses(lost)["lost-work"]) == ("found", "found")
    assert statuses(run("fixed", kill_step=11, kill="node"))["local-disk"] == "clear"


def test_in_the_background_the_bits_are_the_same_and_training_waits_less(run):
    record = run("async-save", kill_step=13, hidden=128)
    assert is_to_the_bit(record) and value(record, "resumed_at") in (5, 10)


def test_killed_within_a_save_the_tutorials_file_is_half_of_one(run):
    with pytest.raises(RankFailed, match=r"rank [01] failed: RuntimeError: PytorchStreamReader"):
        run("model-and-epoch", kill="save", kill_step=11, max_restarts=1)


@pytest.mark.parametrize(
    ("variant", "found"),
    [
        ("broken", {"lost-work"}),
        ("model-and-epoch", {"resume-departs"}),
        ("light", {"resume-departs"}),
        ("one-path", {"resume-departs", "single-path"}),
        ("local-disk", {"lost-work", "local-disk"}),
        ("fixed", set()),
    ],
)
def test_each_variant_is_judged_by_what_is_wrong_with_it_and_nothing_else(run, variant, found):
    record = run(variant, kill_step=13 if variant == "light" else 11)
    verdicts = LAB.judge(record)
    assert {verdict.detector for verdict in verdicts.found} == found
    assert all(verdict.fix for verdict in verdicts if verdict.status != "clear")


# another number of ranks


@pytest.mark.parametrize(("before", "after"), [(2, 3), (3, 1)])
def test_on_another_number_of_ranks_the_loss_goes_on_but_for_the_order_of_sums(run, before, after):
    record = run("fixed", ranks=before, resume_ranks=after, kill_step=11, dropout=0.0, augment=False)
    assert record.run.world_size == after and value(record, "resumed_at") == 10
    assert value(record, "loss_gap_largest") <= 4 * 2**-24  # four times the rounding of a float32
    assert statuses(record)["resume-departs"] == "clear"


@pytest.mark.parametrize("after", [1, 3])
def test_on_another_number_of_ranks_other_random_numbers_are_no_accusation_and_a_lost_state_is(run, after):
    record = run("fixed", ranks=2, resume_ranks=after, kill_step=11)
    assert value(record, "loss_gap_largest") > 1e-4  # dropout and augmentation, drawn by other ranks
    assert statuses(record)["resume-departs"] == "inconclusive"
    lost = run("fixed", ranks=2, resume_ranks=after, kill_step=11, leave_out="optimizer")
    verdict = LAB.judge(lost)["resume-departs"]
    assert (verdict.status, verdict.reason) == ("found", "shared-states-lost")
    assert verdict.numbers["states"] == ["optimizer"]


# wrong use


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ({"kill_rank": 2}, "kill_rank is 2, but ranks count from 0 to 1"),
        ({"kill_step": 21}, "kill_step is 21, but steps count from 0 to 20"),
        ({"kill_step": 20, "kill": "save"}, "saves nothing from step 20 on"),
        ({"global_batch": 1}, "leaves some of 2 ranks without any"),
        ({"resume_ranks": 3, "kill_step": 4}, "after a checkpoint: from interval 5 to 20; given 4"),
        ({"kill": "everything"}, "no kill 'everything'"),
        ({"leave_out": "momentum"}, "no leave_out 'momentum'"),
    ],
    ids=str,
)
def test_a_crash_that_cannot_be_is_refused_before_anything_starts(run, how, said):
    with pytest.raises(UsageError, match=said):
        run("fixed", **how)


def test_states_are_left_out_of_the_full_form_only(run):
    with pytest.raises(UsageError, match="leave_out is for the variant fixed"):
        run("light", leave_out="model")


# the exercise


class Nothing(Training):
    def state_dict(self):
        return {}

    def load_state_dict(self, state):
        pass

    def rank_state(self):
        return {}

    def load_rank_state(self, state):
        pass


class WeightsAndPlace(Nothing):
    def state_dict(self):
        return {"model": self.model.state_dict(), "place": self.sampler.state_dict()}

    def load_state_dict(self, state):
        self.model.load_state_dict(state["model"])
        self.sampler.load_state_dict(state["place"])


class AllButScale(WeightsAndPlace):
    def state_dict(self):
        more = {"optimizer": self.optimizer.state_dict(), "scheduler": self.scheduler.state_dict()}
        return {**super().state_dict(), **more}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.optimizer.load_state_dict(state["optimizer"])
        self.scheduler.load_state_dict(state["scheduler"])

    def rank_state(self):
        return random_state()

    def load_rank_state(self, state):
        set_random_state(state)


class Solved(AllButScale):
    def state_dict(self):
        return {**super().state_dict(), "scaler": self.scaler.state_dict()}

    def load_state_dict(self, state):
        super().load_state_dict(state)
        self.scaler.load_state_dict(state["scaler"])


class Fails(Solved):
    def load_state_dict(self, state):
        self.model.load_state_dict(state["weights"])


def test_the_exercise_is_solved_by_all_state():
    assert LAB.check(Solved).passed


@pytest.mark.parametrize(
    ("attempt", "named", "not_named"),
    [
        (AllButScale, ["the scale of the loss"], ["momentum", "generator", "weights"]),
        (WeightsAndPlace, ["momentum", "schedule", "numpy's random generator", "the loss departs"], ["place in the data"]),
    ],
)
def test_the_check_says_which_state_is_still_missing(attempt, named, not_named):
    findings = "\n".join(LAB.check(attempt).findings)
    assert all(text in findings for text in named) and not any(text in findings for text in not_named)


def test_the_check_survives_what_does_not_work():
    (finding,) = LAB.check(Fails).findings
    assert "did not come to its end" in finding and "KeyError: 'weights'" in finding
    (finding,) = LAB.check(lambda: None).findings
    assert "give the class itself" in finding


# soak: random kills


def random_faults(number: int, seed: int, ranks: int, steps: int) -> tuple[Fault, ...]:
    """A kill for each attempt, at a random rank and point: after a step, in the middle of a save, during a restart."""
    pick = random.Random(seed)
    faults = []
    for attempt in range(number):
        at = pick.choice(["trained", "trained", "save", "saved", "load" if attempt else "trained"])
        step = 0 if at == "load" else pick.randrange(steps - 2)
        faults.append(Fault(kind="kill", rank=pick.randrange(ranks), step=step, at=at, attempt=attempt))
    return tuple(faults)


def kill_again_and_again(total: int, each: int, tmp_path, seed: int = 0) -> dict[str, int]:
    """Launch after launch, each killed `each` times, until `total` kills came about; all must end with the same bits."""
    count = {"kills": 0, "runs": 0, "attempts": 0}
    while count["kills"] < total:
        ranks = 2 + (count["runs"] + seed) % 3
        planned = random_faults(each, 1000 * seed + count["runs"], ranks, 21)
        folder = tmp_path / f"run{count['runs']}"
        record = LAB.run("fixed", ranks=ranks, kill="none", faults=planned, max_restarts=each, interval=3, device="cpu",
                         record_dir=folder, seed=count["runs"], **QUICK)  # fmt: skip
        fired = sum(1 for attempt in attempts(record.run) for _ in attempt.events("fault"))
        assert is_to_the_bit(record), planned
        kept = sorted(folder.glob("variant/storage/full/step-*"))
        assert [verify(path).step for path in kept][-2:] == [18, 21]  # all are whole, and the last is the last step's
        of_run = {"kills": fired, "runs": 1, "attempts": record.run.attempts}
        count = {name: count[name] + number for name, number in of_run.items()}
    left = [p for p in psutil.Process(forkserver.server_pid()).children() if p.status() != psutil.STATUS_ZOMBIE]
    assert not left
    return count


def test_six_random_kills_end_with_the_same_bits(tmp_path):
    assert kill_again_and_again(6, 6, tmp_path)["kills"] >= 6


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_two_hundred_random_kills_end_with_the_same_bits(tmp_path, capsys):
    count = kill_again_and_again(200, 10, tmp_path, seed=1)
    with capsys.disabled():
        print(f"\n{count}: every run ended with the bits of the run that nothing interrupts")
