"""What the tests of every lab share. A module says which lab (LAB), and which settings are quick (QUICK)."""

import pytest
from physics import impossible


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABKIT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def lab(request):
    return request.module.LAB


def within_plan(role, progress):
    """What `on_progress` is told: ranks never make more steps than were planned."""
    begun = sum(progress.steps) if progress.together else max(progress.steps)
    assert not progress.total_steps or begun <= progress.total_steps, f"{role}: {progress.said}"


@pytest.fixture(scope="module")
def run(lab, request, tmp_path_factory):
    """Run a variant on the CPU with the module's quick settings; the same run is made once and shared.

    `again` sets a repetition apart. No record may say what cannot have happened, and no progress more than is planned.
    """
    quick, records = getattr(request.module, "QUICK", {}), {}

    def run(variant="broken", *, again=0, **how):
        key = (variant, again, *sorted(how.items(), key=str))
        if key not in records:
            folder = tmp_path_factory.mktemp("record")
            told = {"device": "cpu", "record_dir": folder, "deadline_s": 90, "on_progress": within_plan}
            records[key] = lab.run(variant, **(told | quick | how))
            assert not impossible(records[key])
        return records[key]

    return run
