"""Functions of bad manners: a named error or the right value at once, and nothing left running. The rest of these stands
in test_early_ends.py (exits, values that cannot travel), test_timeouts.py (endless loops) and test_clean_finish.py."""

import bad_manners as manners
import pytest

from labkit.errors import LabkitError, LaunchError, RankFailed
from labkit.ranks.entry import run_for_its_value
from labkit.ranks.launch import launch

pytestmark = pytest.mark.ranks


def call(program, folder):
    """As the checks of exercises call a learner's function."""
    return launch(run_for_its_value, (program, None), ranks=1, group=False, folder=folder, deadline_s=30).values[0]


@pytest.mark.parametrize(
    ("program", "error", "said"),
    [
        (manners.raises_what_nobody_catches, RankFailed, "rank 0 failed: Gone: for good at "),
        (manners.leaves_a_thread, RankFailed, r"left a thread running \(mine\): join it, or make it a daemon"),
        (manners.floods, RankFailed, "rank 0 failed: it printed more than 64 MiB in step 0; print less"),
        (manners.loses_its_value, LaunchError, "is gone: the program deleted it"),
        (manners.deletes_its_folder, RankFailed, "is gone, as if the program had deleted it"),
    ],
    ids=lambda part: getattr(part, "__name__", ""),
)
def test_a_named_error_says_what_it_did(folder, program, error, said):
    with pytest.raises(LabkitError, match=said) as caught:
        call(program, folder)
    assert caught.type is error
    assert sum(path.stat().st_size for path in folder.glob("*")) < 2**20, "what it printed does not stay"


def test_a_process_in_a_session_of_its_own_is_ended_with_the_run(folder):
    assert call(manners.starts_a_session, folder) > 0  # the fixture looks for what is left


def test_an_idle_pool_of_threads_is_no_fault(folder):
    assert call(manners.keeps_a_pool, folder) == 3
