"""What the ranks read: whose samples, how often, in which order, and whether validation was among them."""
