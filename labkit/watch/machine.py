"""Names of this machine's parts, as provenance carries them."""

from __future__ import annotations

import os
import platform
import sys
from pathlib import Path


def processor_name() -> str:
    """The processor's model, with the number of cores."""
    name = ""
    if sys.platform == "linux":
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith(("model name", "Model")):
                name = line.split(":", 1)[1].strip()
                break
    elif sys.platform == "darwin":
        import subprocess

        name = subprocess.run(
            ["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True, check=False
        ).stdout.strip()
    return f"{name or platform.machine()}, {os.cpu_count()} cores"


def device_name(device: str) -> str:
    """The name of the device that a run used: a GPU's, or the processor's."""
    if device.startswith("cuda"):
        import torch

        return torch.cuda.get_device_name(torch.device(device))
    return processor_name()


def system_name() -> str:
    """Operating system and architecture."""
    return f"{platform.system()} {platform.machine()}"
