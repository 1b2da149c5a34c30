"""What the machine is and can do."""
