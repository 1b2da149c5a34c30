"""Metrics of an evaluation: whose samples they are of, and how often each counts."""
