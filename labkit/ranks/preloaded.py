"""Imported last by the forkserver: what is loaded by now is shared by every rank and never collected.

Without the freeze each rank's collection at teardown copies the pages of all imported modules (0.5-0.75 s a launch).
This module imports nothing of labkit, and labkit/__init__ is lazy: so an edit of labkit counts in the next run.
"""

import gc

gc.collect()
gc.freeze()
