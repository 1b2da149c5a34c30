"""How much of the machine does useful arithmetic, by which convention."""
