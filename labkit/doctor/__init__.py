"""The doctor: labkit's detectors on a training script that labkit did not write, unchanged."""
