"""Found by each Python interpreter that a watched script starts: it arms the watch, and is out of the way again.

Imported by `site`, before anything else. It loads nothing but what is there already, and raises nothing.
"""

import os
import sys

_HERE = os.path.dirname(os.path.abspath(__file__))


def _arm():
    root = os.path.dirname(os.path.dirname(os.path.dirname(_HERE)))
    if root not in sys.path:
        sys.path.append(root)

    class Finder:
        """Wraps a module of torch: the one whose function says that a process is a rank, or the one with optimizers."""

        def __init__(self, name, arm):
            self.name, self.arm = name, arm

        def find_spec(self, name, path=None, target=None):
            if name != self.name:
                return None
            sys.meta_path.remove(self)
            from importlib.util import find_spec

            spec = find_spec(name)
            if spec is None or spec.loader is None:
                return None
            load = spec.loader.exec_module

            def exec_module(module):
                load(module)
                self.arm(module)

            spec.loader.exec_module = exec_module
            return spec

    def group(module):
        from labkit.doctor.arming import arm

        arm(module)

    def optimizers(module):
        from labkit.doctor.alone import arm_optimizers

        arm_optimizers(module)

    sys.meta_path.insert(0, Finder("torch.distributed.distributed_c10d", group))
    sys.meta_path.insert(0, Finder("torch.optim.optimizer", optimizers))


def _pass_on():
    """Load the sitecustomize that this one hides, if there is one."""
    sys.path[:] = [path for path in sys.path if os.path.abspath(path or os.curdir) != _HERE]
    sys.modules.pop("sitecustomize", None)
    try:
        __import__("sitecustomize")
    except ImportError:
        if _this is not None:
            sys.modules["sitecustomize"] = _this


_this = sys.modules.get("sitecustomize")
if os.environ.get("LABKIT_DOCTOR_CHILDREN") and sys.version_info >= (3, 11):
    try:
        _arm()  # first: the other one may load torch
    except Exception as error:
        sys.stderr.write(f"labkit doctor: a process is not watched: {error!r}\n")
_pass_on()
