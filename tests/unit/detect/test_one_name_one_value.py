"""What a verdict says under the name of a measure is that measure."""

from said import two_values

from ..crash_records import Attempt, crash_record, run_of_attempts, uninterrupted


def test_where_a_run_crashed_twice_the_verdict_resumes_where_the_measure_does():
    """The first crash loses 6 steps, the second 2: the worst is not the last."""
    run = run_of_attempts(Attempt(0, 6), Attempt(0, 12, saves=(5, 10)), Attempt(10, 20, killed=None))
    assert not two_values(crash_record(run, uninterrupted(), leave_out="nothing"))
