"""Do ranks hold what they should hold alike: weights, and how they come to be equal."""
