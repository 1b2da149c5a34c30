"""What a step of several micro-batches costs, beside what a step of one does."""

import pytest

from labkit.errors import UsageError
from labkit.theory.accumulation import step_bytes
from labkit.theory.strategies import STRATEGIES

TORCH = ("ddp", "zero1", "fsdp2-no-reshard", "fsdp2-reshard")


@pytest.mark.parametrize("name", TORCH)
@pytest.mark.parametrize("last_alone", [False, True])
def test_one_micro_batch_sends_what_the_strategy_sends_in_fp32(name, last_alone):
    assert step_bytes(name, 4, last_alone=last_alone).sent_units == 4 * STRATEGIES[name].sent_units
    assert step_bytes(name, 4, last_alone=last_alone).gradients == 0


@pytest.mark.parametrize("name", TORCH)
@pytest.mark.parametrize("micro_batches", [1, 2, 5])
def test_reducing_in_the_last_alone_reduces_once_and_gathers_as_often(name, micro_batches):
    each, last = (step_bytes(name, 8, micro_batches=micro_batches, last_alone=alone) for alone in (False, True))
    assert each.reduced == micro_batches * last.reduced and each.gathered == last.gathered


def test_sharding_gathers_in_every_micro_batch_and_the_price_of_reducing_once_is_whole_gradients():
    each, last = (step_bytes("fsdp2-reshard", 64, micro_batches=8, last_alone=alone) for alone in (False, True))
    assert each.gathered == 8 * step_bytes("fsdp2-reshard", 64).gathered
    assert (each.gradients, last.gradients) == (4 / 64, 4)
    assert [step_bytes("ddp", 64, micro_batches=8, last_alone=alone).gradients for alone in (False, True)] == [4, 4]


def test_gathering_in_16_bits_halves_that_alone():
    whole, half = step_bytes("fsdp2-reshard", 4), step_bytes("fsdp2-reshard", 4, gather_bytes=2)
    assert (half.gathered, half.reduced) == (whole.gathered / 2, whole.reduced)


def test_a_step_of_nothing_is_refused():
    with pytest.raises(UsageError, match="at least one micro-batch; given 0"):
        step_bytes("ddp", 2, micro_batches=0)
