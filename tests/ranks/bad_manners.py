"""What a learner's function may do to the machine that it runs on."""

import os
import shutil
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

FOREVER_S = 3600


class Gone(BaseException):
    """Nothing that `except Exception` catches."""


def raises_what_nobody_catches(context):
    raise Gone("for good")


def starts_a_session(context):
    """A process that its process group does not hold."""
    left = subprocess.Popen([sys.executable, "-c", f"import time; time.sleep({FOREVER_S})"], start_new_session=True)
    return left.pid


def leaves_a_thread(context):
    threading.Thread(target=time.sleep, args=(FOREVER_S,), name="mine").start()
    return 1


def keeps_a_pool(context):
    """Its threads are idle when it returns; they are told to end."""
    pool = ThreadPoolExecutor(2)
    globals()["_kept"] = pool
    return pool.submit(sum, (1, 2)).result()


def floods(context):
    while True:
        os.write(1, b"x" * 2**20)


def loses_its_value(context):
    """As if what is written after its return were deleted at once."""
    Path.write_bytes = lambda self, data: len(data)
    return 1


def deletes_its_folder(context):
    shutil.rmtree(context.folder)
    raise ValueError("after that")
