"""What steps wait for data, and what ranks get of a shared store, lock or core."""
