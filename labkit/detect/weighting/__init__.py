"""What an update takes: how much each rank, each micro-batch and each target weighs in its gradient."""
