"""State dicts become tensors and a document, and come back to the bit; what is not data is refused by its path."""

import math

import numpy as np
import pytest
import torch

from labkit.errors import CheckpointError
from labkit.workloads.packing import digest_state, pack, tensor_text, text_tensor, unpack

PLAIN = [None, True, 3, -(2**80), 0.1, 5e-324, math.inf, -0.0, "ü", [], (), {}, (1, (2,)), {3: "a", "b": [None]}, [{}, ()]]


def there_and_back(value):
    document, tensors = pack(value)
    return unpack(tensor_text(text_tensor(document)), tensors.__getitem__)


@pytest.mark.parametrize("value", PLAIN, ids=str)
def test_plain_values_come_back_with_their_types(value):
    got = there_and_back(value)
    assert got == value and type(got) is type(value) and repr(got) == repr(value)


def test_nan_comes_back():
    assert math.isnan(there_and_back(math.nan))


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16, torch.int64, torch.bool, torch.float64], ids=str)
def test_tensors_and_arrays_come_back_to_the_bit(dtype):
    tensor = torch.arange(6).reshape(2, 3).to(dtype)
    got = there_and_back({"a": [tensor, torch.empty(0, 4), torch.tensor(2.5)], "b": np.arange(3, dtype=np.uint32)})
    assert got["a"][0].dtype == dtype and torch.equal(got["a"][0], tensor)
    assert got["a"][1].shape == (0, 4) and got["a"][2].shape == ()
    assert got["b"].dtype == np.uint32 and isinstance(got["b"], np.ndarray) and got["b"].tolist() == [0, 1, 2]


def test_names_that_look_alike_stay_apart():
    one, two = torch.tensor(1), torch.tensor(2)
    got = there_and_back({"a": {"b": one}, "a.b": two})
    assert (int(got["a"]["b"]), int(got["a.b"])) == (1, 2)


def test_the_state_of_an_optimizer_comes_back():
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1, momentum=0.9)
    model(torch.ones(1, 2)).sum().backward()
    optimizer.step()
    got = there_and_back(optimizer.state_dict())
    assert list(got["state"]) == [0, 1] and got["param_groups"] == optimizer.state_dict()["param_groups"]
    assert torch.equal(got["state"][0]["momentum_buffer"], optimizer.state_dict()["state"][0]["momentum_buffer"])


@pytest.mark.parametrize(
    ("value", "said"),
    [
        ({"a": [object()]}, "state.a.0 is a object, which a checkpoint does not hold"),
        ({"fn": print}, "state.fn is a builtin_function_or_method"),
        ({"a": {(1, 2): 3}}, r"state.a has the key \(1, 2\)"),
        ({1, 2}, "the state is a set"),
    ],
)
def test_what_is_not_data_is_refused_by_its_path(value, said):
    with pytest.raises(CheckpointError, match=said):
        pack(value)


def test_equal_states_have_equal_hashes_and_others_do_not():
    state = {"a": torch.ones(3), "b": (1, 2.0)}
    assert digest_state(state) == digest_state({"a": torch.ones(3), "b": (1, 2.0)})
    for other in ({"a": torch.ones(3), "b": [1, 2.0]}, {"a": torch.ones(3).nextafter(torch.tensor(2.0)), "b": (1, 2.0)}):
        assert digest_state(other) != digest_state(state)
