"""Lab 00: what can this machine do? A survey: it measures, nothing is broken on purpose, and later labs use the result."""

from __future__ import annotations

from dataclasses import dataclass

from ..spec import Case, Exercise, LabSpec, Symptom, lazy, setting, source_of


@dataclass(frozen=True, kw_only=True)
class Config:
    """What a run of this lab can be set to."""

    budget_s: float = setting(
        6.0, "about how many seconds the measurements take together, without launches", low=0.1, high=3600
    )
    max_message_mib: int = setting(16, "largest all-reduce, in MiB; the smallest is 1 KiB", low=1, high=4096)
    storage_mib: int = setting(128, "size of the file that is read, in MiB", low=1, high=65536)
    copy_mib: int = setting(
        0, "bytes that a copy reads and writes, in MiB; 0: 8 times the last-level cache, at least 128", low=0, high=65536
    )
    launches: int = setting(3, "launches of ranks that do nothing", low=1, high=50)
    parts: str = setting("all", "what is measured; `link` alone is kept as no baseline", choices=("all", "link"))
    keep: str = setting("yes", "whether the result becomes the baseline of later labs", choices=("yes", "no"))


def _link(name: str, asks: str, **settings: object) -> Case:
    """A survey of nothing but the link, over one whose rate and latency are set."""
    quick = {"parts": ("link",), "keep": ("no",), "budget_s": (0.5,), "max_message_mib": (1,), "launches": (1,)}
    given = {setting: (value,) for setting, value in settings.items()}
    return Case(fault=name, settings={**quick, **given}, asks=asks, evidence=("link_latency", "link_bandwidth"))


SPEC = LabSpec(
    number=0,
    slug="start-here",
    title="Start here",
    question="What can this machine do?",
    symptom="A run is slow, and nobody can say how fast it ought to be: there is nothing to compare it with.",
    minutes=20,
    ranks=2,
    config=Config,
    variants=(),
    detectors=("link-fit", "cores", "page-cache"),
    plan=lazy(".programs:plan", __name__),
    measures=lazy("...detect.survey.measures:survey_measures", __name__),
    main_measures=(
        "matmul_fp32",
        "matmul_bf16",
        "copy",
        "link_latency",
        "link_bandwidth",
        "storage_sequential",
        "storage_random",
        "launch",
    ),
    source=source_of(".programs:SHOWN", __name__),
    figures=("roofline", "link", "bandwidths", "repeats"),
    baseline=lazy("...detect.survey.baseline:baseline_of", __name__),
    invariants=lazy("...detect.survey.measures:invariants", __name__),
    needs_gpu=("tf32 products", "NCCL's link", "device memory's bandwidth"),
    simulated=("what the calculators predict for other sizes and numbers of ranks",),
    symptoms=(
        Symptom(
            "A speed, and nobody can say whether it is good", "nothing to compare it with: the machine was never measured"
        ),
    ),
    theory=lazy(".theory:panel", __name__),
    mysteries=(
        _link("narrow", "50 Mbit/s, and no delay?", hosts=2, link="50mbit"),
        _link("far", "1 Gbit/s, and a delay of 10 ms?", hosts=2, link="1gbit", latency_ms=10.0),
        _link("narrow-and-far", "50 Mbit/s, and a delay of 10 ms?", hosts=2, link="50mbit", latency_ms=10.0),
        _link("none", "No link: both ranks on one host?", hosts=1),
    ),
    exercise=Exercise(
        task=(
            "Predict an all-reduce from a latency and a bandwidth. Return two numbers: the seconds that a ring all-reduce "
            "of `num_bytes` takes on `world_size` ranks, and the message size in bytes at which its latency and its "
            "bandwidth cost the same."
        ),
        signature="def my_prediction(num_bytes, world_size, alpha_s, bytes_per_s):",
        check=lazy(".exercise:check", __name__),
        help=lazy(".help:first", __name__),
    ),
)
