"""The command line: thin, a command a file.

Exit codes: 0 ran, whatever the verdict; 1 --fail-on; 2 wrong use; 3 the program failed; 4 the doctor ended it.
"""

from .ending import main
from .exit_codes import EXIT_AT_DEADLINE, EXIT_FAILED_CHECK, EXIT_INTERRUPTED, EXIT_PROGRAM_FAILED, EXIT_WRONG_USE

__all__ = ["EXIT_AT_DEADLINE", "EXIT_FAILED_CHECK", "EXIT_INTERRUPTED", "EXIT_PROGRAM_FAILED", "EXIT_WRONG_USE", "main"]
