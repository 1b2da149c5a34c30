"""The rows of data/published: one frozen type a table. Its README says what each column means and how rows were chosen."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from ..theory.flops import CONVENTIONS, FULL_ATTENTION, Convention, Shape, convention

Count = Annotated[int, Meta(ge=1)]
Positive = Annotated[float, Meta(gt=0, lt=1e30)]  # lt refuses infinity
NotNegative = Annotated[float, Meta(ge=0, lt=1e30)]
Address = Annotated[str, Meta(pattern=r"^https://[^\s]+$")]
Word = Annotated[str, Meta(min_length=1)]
YesNo = Literal["yes", "no"]
Precision = Literal["fp16", "bf16", "fp8", "fp4"]


class PublishedRow(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What every row has: its id, who printed it, and where."""

    id: Word
    source: Word
    address: Address
    note: str = ""


class TrainingRow(PublishedRow, frozen=True, kw_only=True):
    """One published training run. Empty cells are None; units are in data/published/README.md."""

    model: Word
    device: Word
    num_devices: Count
    layers: Count
    hidden: Count
    heads: Count
    kv_heads: Count
    ffn: Count
    vocab: Count
    mlp: Literal["plain", "gated"]
    tied: YesNo
    seq_len: Count
    micro_batch: Count | None = None
    global_batch_tokens: Count | None = None
    precision: Precision
    recipe: str = ""
    dp: Count | None = None
    sharding: str = ""
    tp: Count | None = None
    pp: Count | None = None
    cp: Count | None = None
    recomputation: Literal["", "none", "selective", "full"] = ""
    tokens_per_s_per_device: Positive | None = None
    throughput_from: Literal["", "stated", "total", "step_time", "sequences", "tflops"] = ""
    convention: str = ""
    stated_mfu_pct: Positive | None = None
    stated_hfu_pct: Positive | None = None
    stated_tflops: Positive | None = None
    peak_tflops: Positive | None = None
    recomputes: Literal["yes", "no", "circular", "not_stated"]

    def __post_init__(self) -> None:
        if self.convention and self.convention not in CONVENTIONS:
            raise ValueError(f"convention must be empty or one of {', '.join(CONVENTIONS)}; given {self.convention!r}")
        if self.recomputes in ("yes", "no", "circular") and not (self.convention and self.tokens_per_s_per_device):
            raise ValueError(f"recomputes = {self.recomputes} needs a convention and tokens_per_s_per_device")
        if self.recomputes == "no" and not self.note:
            raise ValueError("recomputes = no needs its reason in note")
        if bool(self.throughput_from) != bool(self.tokens_per_s_per_device):
            raise ValueError("throughput_from says where tokens_per_s_per_device is from: both or neither")

    @property
    def shape(self) -> Shape:
        return Shape(
            layers=self.layers,
            hidden=self.hidden,
            heads=self.heads,
            kv_heads=self.kv_heads,
            ffn=self.ffn,
            vocab=self.vocab,
            gated=self.mlp == "gated",
            tied=self.tied == "yes",
        )

    def tflops(self, by: Convention | None = None) -> float | None:
        """TFLOP/s of one device by a convention, the row's own by default; None without tokens/s or convention."""
        counted = by or (convention(self.convention) if self.convention else None)
        if counted is None or self.tokens_per_s_per_device is None:
            return None
        return self.tokens_per_s_per_device * self.shape.flops_per_token(self.seq_len, counted) / 1e12

    def mfu_by(self, by: Convention) -> float | None:
        """MFU as a fraction by one convention, of the peak of the row's own precision; None without tokens/s or peak."""
        rate = self.tflops(by)
        return None if rate is None or self.peak_tflops is None else rate / self.peak_tflops

    @property
    def mfu(self) -> float | None:
        """MFU by 6N + 12·L·h·s, whatever the page counted, so that all rows compare; None without tokens/s or peak."""
        return self.mfu_by(FULL_ATTENTION)

    def gap(self) -> float | None:
        """Recomputed over printed, less 1: against the MFU where printed, else the TFLOP/s. None if nothing compares."""
        rate = self.tflops()
        if rate is None:
            return None
        if self.stated_mfu_pct is not None and self.peak_tflops is not None:
            return 100 * rate / self.peak_tflops / self.stated_mfu_pct - 1
        return None if self.stated_tflops is None else rate / self.stated_tflops - 1


class CollectiveRow(PublishedRow, frozen=True, kw_only=True):
    """One measured collective. Bus bandwidth is as nccl-tests define it: for all-reduce 2(n−1)/n × algorithm bandwidth."""

    device: Word
    num_devices: Count
    devices_per_node: Count
    intra_link: str = ""
    inter_link: str = ""
    collective: Literal["all_reduce", "all_gather", "reduce_scatter"]
    algorithm: str = ""
    size_bytes: Count
    time_us: Positive | None = None
    algbw_gb_s: NotNegative | None = None
    busbw_gb_s: NotNegative
    tool: str = ""


class MatmulRow(PublishedRow, frozen=True, kw_only=True):
    """The best rate that a search over shapes found: a ceiling that real programs stay under."""

    device: Word
    device_id: Word
    precision: Precision
    achieved_tflops: Positive
    stated_peak_tflops: Positive
    m: Count
    n: Count
    k: Count
    software: Word


class FailureRow(PublishedRow, frozen=True, kw_only=True):
    """One number about failures of one machine; `bound` says whether it is exact."""

    device: Word
    num_devices: Count
    period_days: Positive | None = None
    measure: Word
    cause: str = ""
    value: Positive
    unit: Word
    bound: Literal["exact", "about", "above", "below", "at_least", "at_most"] = "exact"


class CheckpointRow(PublishedRow, frozen=True, kw_only=True):
    """How long one save stops the training."""

    device: Word
    num_devices: Count
    params_b: Positive | None = None
    mode: Literal["", "sync", "async"] = ""
    size_gb: Positive | None = None
    stall_s: Positive | None = None
