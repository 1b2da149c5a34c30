"""Checkpoints of a script: what is in them, where they go, and what a crash would leave."""
