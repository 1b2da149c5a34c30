"""Gradients between updates: what is added to what, and what is thrown away."""
