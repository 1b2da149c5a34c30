"""What 16 bits do to gradients, updates, the scale and the speed."""
