"""What the tests of every lab share. A module says which lab (LAB), and which settings are quick (QUICK)."""

import pytest


@pytest.fixture(scope="module", autouse=True)
def cache(tmp_path_factory):
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LABKIT_CACHE", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="module")
def lab(request):
    return request.module.LAB


@pytest.fixture(scope="module")
def run(lab, request, tmp_path_factory):
    """Run a variant on the CPU with the module's quick settings; the same run is made once and shared.

    `again` sets a repetition apart.
    """
    quick, records = getattr(request.module, "QUICK", {}), {}

    def run(variant="broken", *, again=0, **how):
        key = (variant, again, *sorted(how.items(), key=str))
        if key not in records:
            folder = tmp_path_factory.mktemp("record")
            records[key] = lab.run(variant, device="cpu", record_dir=folder, **({"deadline_s": 90} | quick | how))
        return records[key]

    return run
