"""CUDA is hidden from every test but those marked `gpu`, which run with --gpu only, on a machine that has one."""

import os

import pytest

if not os.environ.get("LABKIT_TEST_GPU"):
    os.environ["CUDA_VISIBLE_DEVICES"] = ""


def pytest_addoption(parser):
    parser.addoption("--gpu", action="store_true", help="run the tests that need a GPU, and those alone")


def pytest_collection_modifyitems(config, items):
    wanted = config.getoption("--gpu")
    for item in items:
        if item.get_closest_marker("gpu") and not wanted:
            item.add_marker(pytest.mark.skip(reason="needs a GPU: LABKIT_TEST_GPU=1 pytest --gpu"))
        elif wanted and not item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="--gpu runs the tests that need one, and those alone"))
