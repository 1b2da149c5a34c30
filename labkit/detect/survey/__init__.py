"""What the machine can do, out of a survey, and whether its figures fit together."""
