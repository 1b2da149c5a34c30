"""Two runs or more beside each other in a panel: pin one and lay the next over it, or choose among the kept ones."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import ipywidgets as widgets

from .. import __version__
from ..detect.differences import Side, differences
from ..detect.runs import names_of
from ..errors import LabkitError
from ..labs.opened import OpenedLab
from ..record.schema import Record
from ..record.store import kept_runs, read_record
from ..results import Comparison
from .cards import comparison_card, escape
from .kept_runs import said_run

if TYPE_CHECKING:
    from .live.widget import LiveView

ROWS = 6
THIS = "the run of this panel"


def title_of(record: Record, name: str = "") -> str:
    """What ran, as the heading of its lanes."""
    run = record.run
    return f"{name or record.variant}: {run.ranks_said}, {run.steps_said}, {run.wall_s:.2f} s"


def side_of(lab: OpenedLab, record: Record) -> Side:
    """A record as it is compared."""
    spec = lab.spec
    return Side(record, lab.measures(record), spec.main_measures, spec.exact_measures, lab.judge(record))


class Comparing:
    """The part of a panel that compares.

    Args:
        lab: whose runs.
        view: gives the picture that moves.
        current: gives the panel's last record, None before the first run.
    """

    def __init__(self, lab: OpenedLab, view: Callable[[], LiveView], current: Callable[[], Record | None]) -> None:
        self._lab, self._view, self._current = lab, view, current
        self.pinned: Record | None = None
        hint = "Keep this run on the page and lay the next one over it"
        self.pin_button = widgets.Button(description="Pin", icon="thumb-tack", tooltip=hint, disabled=True)
        self._said = widgets.HTML()
        self.menu = widgets.SelectMultiple(
            options=[], rows=ROWS, layout=widgets.Layout(width="100%"), tooltip="Hold Ctrl to choose several"
        )
        self.compare_button = widgets.Button(description="Compare", tooltip="Lay the chosen runs over each other")
        self._table = widgets.HTML()
        # a button and no accordion: the heading of one cannot be reached by keyboard
        self.kept = widgets.ToggleButton(
            description="Compare what was kept of this lab", icon="caret-right", layout=widgets.Layout(width="20em")
        )
        self._room = widgets.VBox([self.menu, self.compare_button, self._table], layout=widgets.Layout(display="none"))
        self.pin_button.on_click(lambda _button: self.toggle_pin())
        self.compare_button.on_click(lambda _button: self.compare())
        self.kept.observe(lambda _change: self._open_or_close(), "value")
        row = widgets.HBox([self.pin_button, self._said], layout=widgets.Layout(flex_flow="row wrap"))
        self.widget = widgets.VBox([row, self.kept, self._room])

    def toggle_pin(self) -> None:
        """Pin the last run, or take the pinned one away."""
        if self.pinned is not None:
            self._unpin()
        elif (record := self._current()) is not None:
            self._pin(record)
            self._say(f"Pinned: {title_of(record)}. The next run lies over it.")

    def ran(self, record: Record) -> None:
        """Take in a run that ended: say how it differs from the pinned one."""
        self.pin_button.disabled = False
        if self.pinned is not None and self.pinned is not record:
            self._tell(self.pinned, record)
        if self.kept.value:
            self.list_kept()

    def _open_or_close(self) -> None:
        opened = self.kept.value
        self.kept.icon, self._room.layout.display = ("caret-down", "") if opened else ("caret-right", "none")
        if opened:
            self.list_kept()

    def list_kept(self) -> None:
        """Fill the menu: the panel's run first, then the kept ones, the newest first."""
        chosen = self.menu.value
        own, record = [], self._current()
        if record is not None:
            own = [(f"{THIS}: {title_of(record)}", "")]
        folder = None if record is None else record.folder
        others = [run for run in kept_runs() if run.lab == self._lab.spec.slug and run.folder != folder]
        self.menu.options = own + [(said_run(run, self._lab.spec, __version__), str(run.folder)) for run in others]
        self.menu.value = [value for value in chosen if value in dict(self.menu.options).values()]

    def compare(self) -> None:
        """Lay the chosen runs over each other: the older of two below; of more the measures of all."""
        try:
            records = [self._record(value) for value in self.menu.value]
            if len(records) == 1 and (own := self._current()) is not None and self.menu.value != ("",):
                records = [own, *records]
            if len(records) < 2:
                self._table.value = "Choose two runs or more, or run this panel and choose one."
                return
            now, *_, before = records
            self._show(before, now)
            self._table.value = comparison_card(self._beside(records[::-1]))
        except LabkitError as error:
            self._table.value = escape(str(error))

    def _beside(self, records: list[Record]) -> Comparison:
        labels = list(dict.fromkeys(record.provenance.label() for record in records))
        columns = dict(zip(names_of(records), map(self._lab.measures, records), strict=True))
        main = set(self._lab.spec.main_measures)
        shown = {
            title: {name: value for name, value in found.items() if name in main or not main}
            for title, found in columns.items()
        }
        return Comparison(shown, labels)

    def _record(self, value: str) -> Record:
        record = self._current() if value == "" else read_record(Path(value))
        assert record is not None
        return record

    def _show(self, before: Record, now: Record) -> None:
        from .live.whole import Whole

        names = names_of([before, now])
        self._pin(before, names[0])
        self._view().finish(Whole(now, title_of(now, names[1])), "laid over the pinned run")
        self._tell(before, now)

    def _pin(self, record: Record, name: str = "") -> None:
        from .live.whole import Whole

        self.pinned = record
        self._view().pin(Whole(record, title_of(record, name)))
        self.pin_button.description = "Unpin"

    def _unpin(self) -> None:
        self.pinned = None
        self._view().pin(None)
        self._view().say([])
        self.pin_button.description = "Pin"
        self.pin_button.disabled = self._current() is None
        self._say("")

    def _tell(self, before: Record, now: Record) -> None:
        try:
            sentences = differences(side_of(self._lab, before), side_of(self._lab, now))
        except LabkitError as error:
            sentences = [f"The two cannot be compared: {error}"]
        self._view().say(sentences)
        self._say(f"Beneath: {title_of(before, names_of([before, now])[0])}.")

    def _say(self, text: str) -> None:
        self._said.value = escape(text)

    def disable(self, running: bool) -> None:
        """While a run goes on nothing is pinned or laid over it."""
        self.pin_button.disabled = running or (self._current() is None and self.pinned is None)
        self.compare_button.disabled = running
