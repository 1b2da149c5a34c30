"""The panel: set, run, stop, see. Built of Image and HTML widgets, so that a notebook without a kernel keeps the last state.

A run lives on a thread, so the kernel stays free: Stop and every control answer meanwhile.
"""

from __future__ import annotations

import dataclasses
import threading
import time
from typing import TYPE_CHECKING, Any

import ipywidgets as widgets

from .. import __version__
from ..detect.cost import cost_of
from ..errors import LabkitError, RunStopped, UnknownName
from ..labs.opened import OpenedLab
from ..record.roles import Role, label_of
from ..record.schema import Record
from ..words import plural
from . import dark, palette
from .cards import cost_card, escape, note_card, record_card, verdicts_card
from .comparing import Comparing, title_of
from .figures import figure
from .kept_runs import keep_verdict
from .live.place import somebody_looks
from .live.run_bar import said_progress
from .plain_terms import in_plain_terms

if TYPE_CHECKING:
    from ..ranks.launch import Control
    from ..ranks.progress import Progress
    from .live.following import Following
    from .live.widget import LiveView

_REFRESH_S = 0.1
_WIDE = {"description_width": "9em"}
_PALE = "labkit-out-of-date"
_STYLE = dark.style() + f"<style>.{_PALE} {{ opacity: 0.35; }}</style>"  # a widget's layout knows no opacity


def _control_of(field: dataclasses.Field) -> Any:
    """The control for one configuration field: a menu for a choice, a box for yes or no, else an entry within bounds."""
    meta, label = field.metadata, {"description": field.name.replace("_", " "), "style": _WIDE}
    if meta["choices"]:
        return widgets.Dropdown(options=list(meta["choices"]), value=field.default, tooltip=meta["help"], **label)
    if isinstance(field.default, bool):
        return widgets.Checkbox(value=field.default, tooltip=meta["help"], **label)
    entry = widgets.BoundedIntText if isinstance(field.default, int) else widgets.BoundedFloatText
    return entry(value=field.default, min=meta["low"], max=meta["high"], tooltip=meta["help"], **label)


class Panel:
    """One lab's panel. Show it as the last line of a cell.

    Args:
        lab: the lab.
        settings: initial values of the controls: variant, ranks, seed and the lab's own.

    Attributes:
        record: of the last run that finished, or None.
    """

    def __init__(self, lab: OpenedLab, **settings: Any) -> None:
        self._lab = lab
        self.record: Record | None = None
        self._control: Control | None = None
        self._thread: threading.Thread | None = None
        self._live: LiveView | None = None
        self._following: Following | None = None
        self._busy = False  # not whether the thread lives: it still has a word to say when the buttons are free
        self._turn = threading.Lock()  # so that this word does not fall into the run that is started meanwhile
        self._last_refresh = 0.0
        self._ran_with: dict[str, Any] = {}
        self._refusal = ""  # why the last figure that was asked for could not be drawn
        self._given = dict(settings)
        self._controls = self._make_controls(settings)
        self._figure_name = widgets.Dropdown(
            options=list(lab.spec.figures), description="figure", style=_WIDE, layout=widgets.Layout(width="26em")
        )
        self._run = widgets.Button(description="Run", icon="play", button_style="primary", tooltip="Run with these settings")
        self._stop = widgets.Button(description="Stop", icon="stop", disabled=True, tooltip="End the ranks of this run")
        self._progress = widgets.FloatProgress(min=0, max=1, layout=widgets.Layout(width="22em"))
        self._state = widgets.HTML("Not run yet. Set the controls and press Run.")
        self._image = widgets.Image(format="png", layout=widgets.Layout(max_width="100%", display="none"))
        self._image.add_class(dark.FIGURE)
        self._verdict = widgets.HTML()
        self._meter = {
            "num_gpus": widgets.BoundedFloatText(value=64, min=0, max=1e6, description="GPUs", style=_WIDE),
            "hours": widgets.BoundedFloatText(value=72, min=0, max=1e6, description="hours", style=_WIDE),
            "price": widgets.BoundedFloatText(value=2.5, min=0, max=1e4, step=0.1, description="price an hour", style=_WIDE),
        }
        self._cost = widgets.HTML()
        self._moving = widgets.VBox(layout=widgets.Layout(width="100%"))
        self.comparing = Comparing(lab, self.live, lambda: self.record)
        for control in self._controls.values():
            control.observe(self._on_control, "value")
        for entry in self._meter.values():
            entry.observe(lambda _change: self._show_cost(), "value")
        self._figure_name.observe(lambda _change: self._show_figure(), "value")
        self._run.on_click(lambda _button: self.start())
        self._stop.on_click(lambda _button: self.stop())
        self._show_cost()
        self.widget = widgets.VBox(
            [
                widgets.HTML(_STYLE + f"<strong>{escape(lab.spec.question)}</strong>"),
                widgets.HBox(list(self._controls.values()), layout=widgets.Layout(flex_flow="row wrap")),
                widgets.HBox(
                    [self._run, self._stop, self._progress, self._state], layout=widgets.Layout(flex_flow="row wrap")
                ),
                self._moving,
                self.comparing.widget,
                self._verdict,
                self._figure_name,
                self._image,
                widgets.HBox(list(self._meter.values()), layout=widgets.Layout(flex_flow="row wrap")),
                self._cost,
            ]
        )
        self.widget.add_class("labkit-panel")
        if somebody_looks():  # else a notebook that a program executes would store the script of what nobody sees
            self.live()

    def live(self) -> LiveView:
        """The picture that moves; made when it is first asked for."""
        if self._live is None:
            from .live.widget import LiveView

            self._live = LiveView(lambda ask: self.stop() if ask == "stop" else self.start())
            self._moving.children = [self._live]
        return self._live

    def _make_controls(self, settings: dict[str, Any]) -> dict[str, Any]:
        spec = self._lab.spec
        controls: dict[str, Any] = {
            "variant": widgets.Dropdown(options=[v.name for v in spec.variants], description="variant", style=_WIDE),
        }
        if spec.ranks > 1:  # a lab of one process has nothing to choose
            controls["ranks"] = widgets.BoundedIntText(value=spec.ranks, min=1, max=16, description="ranks", style=_WIDE)
        if spec.hosts > 1:
            help = "rate of each host's link, as in 400mbit or 2.5gbit; empty for no limit"
            controls["link"] = widgets.Text(
                value=spec.link, description="link", tooltip=help, style=_WIDE, continuous_update=False
            )
        fields = {field.name: field for field in dataclasses.fields(spec.config)}
        controls |= {name: _control_of(fields[name]) for name in spec.controls}
        controls["seed"] = widgets.BoundedIntText(value=0, min=0, max=2**31 - 1, description="seed", style=_WIDE)
        for name, value in sorted(settings.items(), key=lambda item: item[0] != "variant"):
            if name not in controls:
                raise UnknownName("control of the panel", name, controls)
            controls[name].value = value
            if name == "variant":
                self._take_conditions(controls)
        controls["variant"].observe(lambda _change: self._take_conditions(self._controls), "value")
        return controls

    def _take_conditions(self, controls: dict[str, Any]) -> None:
        """Set the controls that some variant has conditions for to those under which the chosen one shows what it shows.

        Where the chosen one has none for a control, it goes back to what the panel was given, else to its default.
        """
        spec = self._lab.spec
        chosen = spec.variant(controls["variant"].value).defaults
        own = {name for variant in spec.variants for name in variant.defaults}
        for field in dataclasses.fields(spec.config):
            if field.name in own and field.name in controls:
                controls[field.name].value = chosen.get(field.name, self._given.get(field.name, field.default))

    def settings(self) -> dict[str, Any]:
        """What the controls say now."""
        return {name: control.value for name, control in self._controls.items()}

    @property
    def running(self) -> bool:
        """Whether a run is under way."""
        return self._busy

    def start(self) -> None:
        """Run with the present settings, on a thread; what Run does."""
        from ..ranks.launch import Control

        with self._turn:
            if self.running:
                return
            self._control, self._busy = Control(), True
            settings = self.settings()
            self._run.disabled, self._stop.disabled = True, False
            self._progress.value, self._progress.bar_style = 0, ""
            ranks = settings.get("ranks", 1)
            self._state.value = f"starting {plural(ranks, 'rank')} …"
            self.live().begin(ranks, f"{settings['variant']}: {plural(ranks, 'rank')}")
            self.comparing.disable(running=True)
            given = (settings, self._control)
            self._thread = threading.Thread(target=self._work, args=given, daemon=True, name="labkit-panel")
            self._thread.start()

    def stop(self) -> None:
        """End the run that is under way, if any; what Stop does."""
        if self._control is not None:
            self._control.stop()

    def wait(self, timeout_s: float | None = None) -> bool:
        """Wait until no run is under way; for tests and scripts."""
        if self._thread is not None:
            self._thread.join(timeout_s)
            return not self._thread.is_alive()
        return True

    def _work(self, settings: dict[str, Any], control: Control) -> None:
        from .live.following import Following
        from .live.whole import Whole

        ran_with, variant = dict(settings), settings.pop("variant")
        if settings.get("ranks", 1) < self._lab.spec.hosts:
            settings.pop("link", None)  # too few ranks for two hosts: there is no link
        # the last word is said when the buttons are free again: who reads it may press at once
        last_word, bar_style, whole = "✗ labkit itself failed", "danger", None
        self._following = Following(self.live(), variant)
        try:
            record = self._lab.run(variant, control=control, on_progress=self._on_progress, **settings)
            self.record, self._ran_with = record, ran_with
            whole = Whole(record, title_of(record))
            self._following.end()
            self.live().finish(whole, "")
            verdicts = self._lab.judge(record)
            keep_verdict(record, verdicts, __version__)
            drawn = self._show_figure()
            self._verdict.value = in_plain_terms(verdicts_card(verdicts)) + record_card(record)
            self.comparing.ran(record)
            self._show_cost()
            self._progress.value = 1
            last_word, bar_style = f"done in {sum(run.wall_s for run in record.runs.values()):.2f} s", "success"
            if not drawn:
                last_word = self._refusal = f"{last_word}. {self._refusal}"
        except RunStopped as stopped:
            last_word = escape(f"■ {stopped}. The figure, if any, is of an earlier run.")
            bar_style = "warning"
        except LabkitError as error:
            last_word = "✗ the run failed"
            self._verdict.value = note_card(in_plain_terms(str(error)), "found").replace("\n", "<br>")
        except Exception as error:  # a thread's exception would vanish: say it where the reader looks
            self._verdict.value = note_card(f"{type(error).__name__}: {error}", "found")
            raise
        finally:
            self._following.end()
            if whole is None:
                self.live().finish(None, "stopped" if bar_style == "warning" else "the run failed")
            with self._turn:
                self._busy = False
                self.comparing.disable(running=False)
                self._run.disabled, self._stop.disabled = False, True
                self._progress.bar_style, self._state.value = bar_style, last_word
                if bar_style == "success":
                    self._mark_stale()

    def _on_progress(self, role: str, progress: Progress) -> None:
        if self._following is not None:
            self._following.progress(role, progress)
        now = time.monotonic()
        if now - self._last_refresh < _REFRESH_S:
            return
        self._last_refresh = now
        what = "" if role == Role.VARIANT else f"{label_of(role, len(progress.steps))}: "
        self._progress.value = progress.fraction_of_all
        if not progress.running:
            self._state.value = f"{what}starting {plural(len(progress.steps), 'rank')} …"
            return
        self._state.value = f"{what}{plural(progress.running, 'rank')} running, {said_progress(progress)}"

    def _shown_settings(self) -> dict[str, Any] | None:
        if self.record is None:
            return None
        shown = {name: self.record.config[name] for name in self._lab.spec.controls}
        if "link" in self._controls:
            shown["link"] = self._ran_with.get("link", "")
        provenance = self.record.provenance
        return {**shown, "variant": self.record.variant, "ranks": provenance.world_size, "seed": provenance.seed}

    def _on_control(self, _change: Any) -> None:
        self._mark_stale()

    def _mark_stale(self) -> None:
        """Dim the figure and say so when it is not of the present settings."""
        shown = self._shown_settings()
        if shown is None or self.running:
            return
        moved = [name for name, value in self.settings().items() if value != shown[name]]
        (self._image.add_class if moved else self._image.remove_class)(_PALE)
        if moved:
            before = ", ".join(f"{name} {shown[name]}" for name in moved)
            self._state.value = f"⚠ out of date: the figure is of {escape(before)}. Press Run."
        elif self._state.value.startswith("⚠"):
            self._state.value = "the figure is of these settings"

    def _show_figure(self) -> bool:
        """Draw the chosen figure of the last record, or say why it cannot be drawn. Returns whether one is seen."""
        if self.record is None:
            return False
        try:
            picture = figure(str(self._figure_name.value))(self.record)
        except LabkitError as error:
            self._image.layout.display = "none"
            self._state.value = self._refusal = escape(in_plain_terms(str(error)))
            return False
        self._image.value = picture.png()
        self._image.layout.display = ""
        if self._state.value == self._refusal:  # of another figure
            self._state.value = "the figure is of these settings"
            self._mark_stale()
        return True

    def _show_cost(self) -> None:
        waste = 0.0
        if self.record is not None:
            waste = max((v.waste or 0.0 for v in self._lab.judge(self.record)), default=0.0)
        size = {name: entry.value for name, entry in self._meter.items()}
        cost = cost_of(waste, num_gpus=size["num_gpus"], hours=size["hours"], price_per_gpu_hour=size["price"])
        self._cost.value = (
            cost_card(waste, cost, **size)
            if waste
            else f"<span style='color:{palette.GREY}'>The cost meter waits for a run that wastes something.</span>"
        )

    def _repr_mimebundle_(self, include=None, exclude=None):
        bundle: Any = self.widget._repr_mimebundle_(include=include, exclude=exclude)
        data = dict(bundle[0] if isinstance(bundle, tuple) else bundle)
        data["text/plain"] = (
            f"Panel of {self._lab.spec.slug}: run all cells to get its controls; they need a running kernel."
        )
        return data
