"""Are modules in the mode that training, or evaluation, needs."""
