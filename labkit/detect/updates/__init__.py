"""What updates do to the weights."""
