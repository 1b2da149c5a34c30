"""How old gradients are, what that does, and who is slow."""
