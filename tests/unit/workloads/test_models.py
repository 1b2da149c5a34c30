import pytest
import torch

from labkit.workloads.models import MODELS, build

each_model = pytest.mark.parametrize("name", MODELS)


def weights(model) -> torch.Tensor:
    return torch.cat([p.detach().reshape(-1) for p in model.parameters()])


@each_model
def test_equal_seeds_give_equal_weights_and_others_do_not(name):
    assert torch.equal(weights(build(name, seed=1)), weights(build(name, seed=1)))
    assert not torch.equal(weights(build(name, seed=1)), weights(build(name, seed=2)))


@each_model
def test_the_callers_random_state_is_left_alone_and_does_not_matter(name):
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one = weights(build(name, seed=1))
    assert torch.equal(torch.get_rng_state(), before)
    torch.rand(7)
    assert torch.equal(weights(build(name, seed=1)), one)


@each_model
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_a_model_maps_images_to_ten_classes_in_its_precision(name, dtype):
    model = build(name, seed=0, dtype=dtype)
    assert (model(torch.zeros(3, 64, dtype=dtype)).shape, weights(model).dtype) == ((3, 10), dtype)


@each_model
def test_a_double_model_starts_where_the_single_one_does(name):
    assert torch.equal(weights(build(name, seed=1, dtype=torch.float64)), weights(build(name, seed=1)).double())


@each_model
def test_no_model_keeps_statistics_of_its_batches(name):
    """They would be each rank's own, and W ranks would not equal one process."""
    assert list(build(name, seed=0).buffers()) == []


def test_an_unknown_model_is_refused_with_those_there_are():
    with pytest.raises(ValueError, match="no model 'gpt'; there are: mlp, cnn"):
        build("gpt", seed=0)
