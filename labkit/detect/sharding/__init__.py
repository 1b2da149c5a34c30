"""What sharded state keeps and sends, and the traps around it."""
