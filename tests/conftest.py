"""CUDA is hidden from every test but those marked `gpu`, which run with --gpu only, on a machine that has one."""

import os

import pytest

# Two workers share the cores: a thread that waits for its turn by spinning takes it from those that work.
os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")

if not os.environ.get("LABKIT_TEST_GPU"):
    os.environ["CUDA_VISIBLE_DEVICES"] = ""


def pytest_addoption(parser):
    parser.addoption("--gpu", action="store_true", help="run the tests that need a GPU, and those alone")


# The slow ones first, so that workers end together.
ORDER = ("notebooks", "ranks", "cli", "labs", "claims", "meta", "browser", "unit")


def group_of(item):
    """What one worker runs together: a file, whose tests share records; of the notebooks' file, a notebook."""
    folder, file = item.path.parent.name, item.path.name
    notebook = getattr(item, "callspec", None) and item.callspec.params.get("path")
    return f"{folder}/{file}" + (f"/{notebook.stem}" if folder == "notebooks" and notebook else "")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config, items):
    for item in items:
        item.add_marker(pytest.mark.xdist_group(group_of(item)))
    places = {folder: place for place, folder in enumerate(ORDER)}
    items.sort(key=lambda item: min((places[part] for part in item.path.parts if part in places), default=len(ORDER)))
    wanted = config.getoption("--gpu")
    for item in items:
        if item.get_closest_marker("gpu") and not wanted:
            item.add_marker(pytest.mark.skip(reason="needs a GPU: LABKIT_TEST_GPU=1 pytest --gpu"))
        elif wanted and not item.get_closest_marker("gpu"):
            item.add_marker(pytest.mark.skip(reason="--gpu runs the tests that need one, and those alone"))
