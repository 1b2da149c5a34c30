"""Whether communication is hidden, how often gradients are reduced, and who comes late."""
