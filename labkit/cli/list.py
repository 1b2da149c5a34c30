"""`labkit list`."""

from __future__ import annotations

from .output import console


def list_labs() -> None:
    """List the labs."""
    from ..labs import specs
    from ..view.terminal import print_labs

    print_labs(console(), specs())
