"""A panel for each lab: what may be moved, and the curves that follow. The formulas are those of `labkit.theory`."""
