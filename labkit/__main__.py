"""The command `labkit`, as `python -m labkit` and torchrun start it."""

import sys

from .interrupts import ended_in_order


def main() -> None:
    """Run the command line, with signals taken care of before anything else is loaded."""
    with ended_in_order():
        try:
            from .cli import main as command_line
        except KeyboardInterrupt:
            print("labkit: interrupted", file=sys.stderr)
            sys.exit(130)
        command_line()


if __name__ == "__main__":
    main()
