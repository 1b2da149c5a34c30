"""The eyes: what hooks into torch or reads the machine while a program runs, and writes through a probe."""
