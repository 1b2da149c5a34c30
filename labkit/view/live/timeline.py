"""A record's timeline to step through: in a page the picture that moves, elsewhere a picture that does not."""

from __future__ import annotations

from typing import Any

from ...record.schema import Record
from ..picture import Picture
from .place import somebody_looks
from .whole import Whole


class Timeline:
    """What each rank of a record did when. Show it as the last line of a cell.

    Args:
        record: whose run under study is shown.
        title: what ran, in words.
        picture: what a page without a kernel shows.
        beneath: a record to lay beneath it, on the same axes.
    """

    def __init__(self, record: Record, title: str, picture: Picture, beneath: Record | None = None) -> None:
        self._record, self._title, self._picture, self._beneath = record, title, picture, beneath

    def __repr__(self) -> str:
        return self._picture.alt

    def widget(self) -> Any:
        """The widget itself."""
        from .widget import LiveView

        view = LiveView()
        if self._beneath is not None:
            view.pin(Whole(self._beneath, self._beneath.variant))
        view.finish(Whole(self._record, self._title), "")
        return view

    def _repr_mimebundle_(self, include=None, exclude=None):
        data, metadata = self._picture._repr_mimebundle_(include, exclude)
        if somebody_looks():
            bundle: Any = self.widget()._repr_mimebundle_(include=include, exclude=exclude)
            found = dict(bundle[0] if isinstance(bundle, tuple) else bundle)
            data = {**found, **data}
        return data, metadata
