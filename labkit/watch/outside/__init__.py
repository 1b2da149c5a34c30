"""Watchers that attach to a script from outside: the script is not changed, what it calls in its libraries is.

One file a surface of a library. Each replaces the calls it watches by ones that note and pass on: arguments, results,
exceptions and random numbers are the library's own.
"""
