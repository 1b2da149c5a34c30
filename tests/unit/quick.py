"""How property tests search: the same examples every time, few enough for a test that is run at every change."""

from hypothesis import settings

quick = settings(max_examples=50, derandomize=True, deadline=None, database=None)
"""A decorator, above `given`."""
