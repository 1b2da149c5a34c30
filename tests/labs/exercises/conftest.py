"""What the tests of every exercise share: a machine that is busy."""

import pytest
from busy_cores import busy_cores


@pytest.fixture
def busy(request):
    """All cores busy with something else.

    For the first right answer of a test, and in `make soak` for each.
    """
    call = getattr(request.node, "callspec", None)
    first = call is None or not any(call.indices.values()) or request.node.get_closest_marker("soak")
    with busy_cores(None if first else 0):
        yield
