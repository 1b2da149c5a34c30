"""What was seen: the schema of a rank's file, the probe that writes it, the store that reads it, its arrays."""
