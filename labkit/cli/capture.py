"""`labkit capture`."""

from __future__ import annotations

from typing import Annotated

from .options import named_path, one_or_more, option


def capture(
    out: Annotated[str, option("A new folder for the recordings.", "DIR", "--out")],
    labs: Annotated[str | None, option("Labs, with commas between; all if left out.", "SLUGS")] = None,
    minutes: Annotated[float, option("No further run starts after these.", "FLOAT")] = 6.0,
) -> None:
    """Record labs on this device.

    Their recordings can be shown elsewhere, marked as recorded, with the device and the date.
    """
    from ..capture import capture as capture_labs

    chosen, where = None if labs is None else one_or_more("--labs", labs), named_path(out)
    kept = capture_labs(chosen, where, minutes=minutes, tell=lambda line: print(line, flush=True))
    print(f"{len(kept)} recordings in {out}; to ship them, put them under data/recordings/")
