"""What lessons 01, 03, 07 and 08 say of torch, asked of the torch that is installed."""

import inspect

import pytest
import torch
import torch.nn.functional as F
from torch.utils.data import DistributedSampler


def test_a_scaler_starts_at_65536_doubles_after_2000_good_steps_and_halves_after_an_overflow():
    given = inspect.signature(torch.amp.GradScaler.__init__).parameters
    assert [given[name].default for name in ("init_scale", "growth_factor", "backoff_factor", "growth_interval")] == [
        *(2.0**16, 2.0, 0.5, 2000)
    ]
    weight = torch.nn.Parameter(torch.ones(1))
    optimizer = torch.optim.SGD([weight], lr=1.0)
    scaler = torch.amp.GradScaler("cpu", growth_interval=1)
    scales, weights = [], []
    for factor in (1.0, float("inf"), 1.0):
        optimizer.zero_grad()
        scaler.scale((weight * factor).sum()).backward()
        scaler.step(optimizer)
        scaler.update()
        scales.append(scaler.get_scale())
        weights.append(weight.item())
    assert scales == [2.0**17, 2.0**16, 2.0**17]
    assert weights == [0.0, 0.0, -1.0]  # the step that overflowed was skipped


def test_autocast_on_a_cpu_computes_losses_in_fp32_and_softmax_and_layer_norm_in_16_bits():
    numbers = torch.randn(4, 8)
    with torch.autocast("cpu", torch.bfloat16):
        hidden = torch.nn.Linear(8, 8)(numbers)
        losses = F.cross_entropy(hidden, torch.arange(4)), F.mse_loss(hidden, hidden)
        others = hidden, F.softmax(hidden, -1), F.layer_norm(hidden, (8,))
    assert {loss.dtype for loss in losses} == {torch.float32}
    assert {other.dtype for other in others} == {torch.bfloat16}


def test_the_kernels_of_softmax_and_layer_norm_add_up_in_32_bits_on_a_cpu():
    even = torch.full((1, 4096), 1.0).bfloat16()  # a sum in bf16 would stop at 256
    assert F.softmax(even, -1)[0, 0].item() == 1 / 4096
    ramp = torch.arange(4096, dtype=torch.float32).bfloat16().reshape(1, -1)
    exact = F.layer_norm(ramp.double(), (4096,))
    assert (F.layer_norm(ramp, (4096,)).double() - exact).abs().max() < 2**-7 * exact.abs().max()


def test_convolutions_use_tf32_by_default_and_matrix_products_when_asked():
    assert torch.backends.cudnn.allow_tf32
    before = torch.get_float32_matmul_precision()
    assert before == "highest"
    torch.set_float32_matmul_precision("high")
    assert torch.get_float32_matmul_precision() == "high"
    torch.set_float32_matmul_precision(before)


@pytest.mark.parametrize("eps", [1e-8, 1e-12])
def test_adams_eps_and_the_squares_of_small_gradients_are_0_in_fp16(eps):
    assert torch.tensor(eps).half() == 0 and (torch.tensor(1e-4).half() ** 2) == 0
    weight = torch.nn.Parameter(torch.full((2,), 0.1).half())
    weight.grad = torch.tensor([0.0, 1e-4]).half()
    torch.optim.Adam([weight], eps=eps).step()
    assert not weight.isfinite().all()


def test_numbers_of_16_bits_near_a_tenth_lie_6e_5_and_5e_4_apart():
    tenth = torch.tensor(0.1)
    for dtype, apart in ((torch.float16, 6e-5), (torch.bfloat16, 5e-4)):
        gap = torch.finfo(dtype).eps * 2.0**-4
        assert gap == pytest.approx(apart, rel=0.03)
        near = tenth.to(dtype)
        assert near + torch.tensor(0.49 * gap).to(dtype) == near and near + torch.tensor(gap).to(dtype) > near


def test_a_sampler_deals_every_wth_place_of_one_order_and_another_seed_breaks_the_shares():
    data = list(range(10))
    shares = [list(DistributedSampler(data, 4, rank, seed=3)) for rank in range(4)]
    order = torch.randperm(10, generator=torch.Generator().manual_seed(3)).tolist()
    padded = order + order[:2]
    assert shares == [padded[rank::4] for rank in range(4)]
    apart = [list(DistributedSampler(data, 2, rank, seed=rank)) for rank in range(2)]
    assert len({*apart[0], *apart[1]}) < 10


def test_a_number_that_is_divided_by_2_or_4_and_added_up_is_the_number_and_by_3_it_need_not_be():
    gradients = torch.randn(10_000, generator=torch.Generator().manual_seed(0))
    for ranks in (1, 2, 4):
        part = gradients / ranks
        assert torch.equal(sum(part for _ in range(ranks)), gradients)
    third = gradients / 3
    assert not torch.equal(third + third + third, gradients)


def test_join_stands_in_for_a_rank_that_has_fewer_steps():
    from torch.distributed.algorithms.join import Join
    from torch.nn.parallel import DistributedDataParallel

    assert hasattr(DistributedDataParallel, "join_hook") and inspect.isclass(Join)


def test_without_a_gpu_a_loader_pins_nothing():
    if torch.accelerator.is_available():
        pytest.skip("this machine has an accelerator")
    given = torch.utils.data.TensorDataset(torch.zeros(4, 2))
    with pytest.warns(UserWarning, match="no accelerator"):
        (batch,) = next(iter(torch.utils.data.DataLoader(given, 2, pin_memory=True)))
    assert not batch.is_pinned() and torch.equal(batch, torch.zeros(2, 2))


def test_a_collective_waits_for_30_minutes_on_gloo_and_10_on_nccl():
    from torch.distributed import constants

    assert constants.default_pg_timeout.total_seconds() == 30 * 60
    nccl = constants.default_pg_nccl_timeout  # None where torch is built without NCCL
    assert nccl is None or nccl.total_seconds() == 10 * 60
