"""What a crash cost, and whether the state came back."""
