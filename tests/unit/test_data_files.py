"""The data sets that labkit ships are what data/README.md says they are."""

import hashlib
import re
from pathlib import Path

import numpy as np
import pytest

DATA = Path(__file__).parents[2] / "data"
DIGITS = DATA / "digits" / "digits.npz"
README = (DATA / "README.md").read_text(encoding="utf-8")


@pytest.fixture(scope="module")
def digits() -> dict[str, np.ndarray]:
    with np.load(DIGITS, allow_pickle=False) as archive:
        return dict(archive)


def test_digits_hold_images_and_labels_and_nothing_else(digits):
    assert {key: (array.dtype.name, array.shape) for key, array in digits.items()} == {
        "images": ("uint8", (1797, 8, 8)),
        "labels": ("uint8", (1797,)),
    }


def test_digit_pixels_use_the_whole_range_from_0_to_16(digits):
    assert np.unique(digits["images"]).tolist() == list(range(17))


def test_every_digit_class_has_the_count_that_its_authors_published(digits):
    assert np.bincount(digits["labels"]).tolist() == [178, 182, 177, 183, 181, 182, 181, 179, 174, 180]


def test_no_digit_occurs_twice(digits):
    assert len({image.tobytes() for image in digits["images"]}) == 1797


def test_the_classes_can_be_told_apart_by_their_mean_images(digits):
    """Labels belong to their images: the nearest class mean is right for nine digits of ten."""
    images, labels = digits["images"].reshape(-1, 64).astype(float), digits["labels"]
    means = np.stack([images[labels == label].mean(axis=0) for label in range(10)])
    nearest = ((images[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    assert (nearest == labels).mean() > 0.9


def test_the_checksum_in_the_readme_is_that_of_the_file():
    assert re.findall(r"`([0-9a-f]{64})`", README) == [hashlib.sha256(DIGITS.read_bytes()).hexdigest()]


def test_the_readme_gives_source_authors_and_licence():
    for words in ("E. Alpaydin and C. Kaynak", "10.24432/C50P49", "CC BY 4.0", "**Changes**"):
        assert words in README
