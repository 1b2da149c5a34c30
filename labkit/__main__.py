"""`python -m labkit`, as torchrun starts it."""

from .cli import main

main()
