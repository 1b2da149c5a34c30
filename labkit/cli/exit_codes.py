"""How commands end: 0 ran, whatever the verdict; else one of these."""

EXIT_FAILED_CHECK = 1
"""A verdict has a status that --fail-on names."""
EXIT_WRONG_USE = 2
EXIT_PROGRAM_FAILED = 3
"""The program under study failed, or hung."""
EXIT_AT_DEADLINE = 4
"""The doctor ended a script that went on past its --deadline."""
EXIT_INTERRUPTED = 130
