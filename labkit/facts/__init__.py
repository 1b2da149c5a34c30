"""What others measured or state, each with its source: devices, published points, claims."""
