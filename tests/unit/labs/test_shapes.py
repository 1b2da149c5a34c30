"""What the programs that a learner reads say of shapes at their top holds."""

from types import SimpleNamespace

import pytest
import torch

from labkit.labs.duplicate_data.programs import LOADERS
from labkit.labs.overlap import Config as Overlap
from labkit.labs.overlap.workload import build_model, micro_batches
from labkit.labs.precision import Config as Precision
from labkit.labs.precision.programs import build_model as model_of
from labkit.labs.precision.programs import loader_of
from labkit.workloads.digits import Digits
from labkit.workloads.models import MODELS, build
from labkit.workloads.scans import draw
from labkit.workloads.text import text_loader


def sizes(*tensors):
    return [tuple(tensor.shape) for tensor in tensors]


@pytest.mark.parametrize("name", sorted(set(LOADERS) - {"iterable-unsharded"}))  # it starts workers
def test_a_loader_of_digits_gives_images_labels_and_ids(name):
    images, labels, ids = next(iter(LOADERS[name](Digits(40), 1, 2, 8, 0, 0)))
    assert sizes(images, labels, ids) == [(8, 64), (8,), (8,)] and images.min() >= 0 and images.max() <= 1


def test_a_step_of_the_overlap_lab_has_micro_batches():
    config = Overlap(batch=12, micro_batches=3, width=16, layers=1)
    (step,) = micro_batches(config, SimpleNamespace(seed=0, rank=0, device=torch.device("cpu")), 1)
    assert [sizes(*pair) for pair in step] == [[(4, 64), (4,)]] * 3
    assert sizes(build_model(config, 0)(step[0][0])) == [(4, 10)]


def test_a_batch_of_the_precision_lab_is_of_digits_or_of_text():
    digits, text = (Precision(model=model, batch=4) for model in ("mlp", "gpt"))
    of_digits, of_text = (next(iter(loader_of(config, 0, 0))) for config in (digits, text))
    assert sizes(*of_digits) == [(4, 64), (4,), (4,)] and sizes(model_of(digits, 0)(of_digits[0])) == [(4, 10)]
    length = of_text[0].shape[1]
    assert sizes(*of_text) == [(4, length), (4, length), (4,)]
    assert sizes(model_of(text, 0)(of_text[0])) == [(4, length, 256)]


def test_text_is_tokens_and_the_next_ones():
    tokens, targets = next(iter(text_loader(3, 7, seed=0)))
    assert sizes(tokens, targets) == [(3, 7), (3, 7)] and tokens[0, 1:].tolist() == targets[0, :-1].tolist()


@pytest.mark.parametrize("name", MODELS)
def test_a_model_of_digits_gives_ten_logits(name):
    assert sizes(build(name, seed=0)(torch.zeros(5, 64))) == [(5, 10)]


def test_a_scan_is_thirty_two_times_its_scale_on_each_side():
    assert draw(torch.zeros(2, 64).numpy(), 3).shape == (2, 96, 96)
