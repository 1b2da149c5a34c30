"""What the tests of every lab share. A module says which lab (LAB), and which settings are quick (QUICK)."""

import os

import pytest
from physics import impossible
from said import two_values, unheld, unmeant
from shared_records import can_be_shared, shared_record


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABKIT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def records_of_the_session(tmp_path_factory):
    """A folder that all workers of this session share."""
    base = tmp_path_factory.getbasetemp()
    folder = (base.parent if "PYTEST_XDIST_WORKER" in os.environ else base) / "shared-records"
    folder.mkdir(exist_ok=True)
    return folder


@pytest.fixture(scope="module")
def lab(request):
    return request.module.LAB


def within_plan(role, progress):
    """What `on_progress` is told: ranks never make more steps than were planned."""
    begun = sum(progress.steps) if progress.together else max(progress.steps)
    assert not progress.total_steps or begun <= progress.total_steps, f"{role}: {progress.said}"


@pytest.fixture(scope="module")
def run(lab, request, tmp_path_factory, records_of_the_session):
    """Run a variant on the CPU with the module's quick settings; the same run is made once and shared.

    `again` sets a repetition apart. No record may say what cannot have happened, one name may have
    one value only, figures hold what is said of them, and progress is within what is planned.
    """
    quick, records = getattr(request.module, "QUICK", {}), {}

    def run(variant="broken", *, again=0, **how):
        key = (variant, again, *sorted(how.items(), key=str))
        if key not in records:
            chosen = {"device": "cpu", "deadline_s": 90} | quick | how
            if again or not can_be_shared(variant, chosen):
                told = {"record_dir": tmp_path_factory.mktemp("record"), "on_progress": within_plan}
                records[key] = lab.run(variant, **(told | chosen))
            else:
                records[key] = shared_record(records_of_the_session, lab, variant, chosen, on_progress=within_plan)
            assert not impossible(records[key]) and not two_values(records[key])
            assert not unheld(records[key]) and not unmeant(records[key])
        return records[key]

    return run
