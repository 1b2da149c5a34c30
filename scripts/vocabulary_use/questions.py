"""What to record so that a question can be answered: the table of docs/your-own-script.md.

Names in it are the vocabulary's.

`{count:updates}` stands for a name of this sort, `{fact:lr,momentum}` for a call that declares facts.
"""

import re
from dataclasses import dataclass

from labkit import labs

from .judged import PACKAGE, Uses, known


@dataclass(frozen=True)
class Row:
    """A question that a script's record can answer.

    Attributes:
        question: as a person asks it.
        detectors: that answer it.
        record: what they need, as Markdown with names of the vocabulary.
    """

    question: str
    detectors: tuple[str, ...]
    record: str

    @property
    def names(self) -> set[tuple[str, str]]:
        """(sort, name) of all that the row tells to record."""
        return {(sort, name) for sort, names in _NAMES.findall(self.record) for name in names.split(",")}

    @property
    def markdown(self) -> str:
        asked = ", ".join(f"`{name}`" for name in self.detectors)
        return f"| {self.question} ({asked}) | {_NAMES.sub(_written, self.record)} | `{lab_of(self.detectors[0])}` |"


_NAMES = re.compile(r"\{([a-z]+):([a-z_,]+)\}")


def _written(found: re.Match) -> str:
    sort, names = found[1], found[2].split(",")
    if sort == "fact":
        return f"`probe.declare({', '.join(f'{name}=…' for name in names)})`"
    return ", ".join(f"`{name}`" for name in names)


def lab_of(detector: str) -> str:
    """The first lab that asks a detector."""
    return next(spec.slug for spec in labs.specs() if detector in spec.detectors)


HEAD = "| To ask | record | `--lab` |"

ROWS = (
    Row(
        "Do ranks or workers read the same samples, all of them, in a new order each epoch?",
        ("rank-duplicates", "worker-duplicates", "coverage", "order"),
        'samples: `probe.batches(loader, epoch=epoch)`, or `probe.samples("train", batch, ids)` in a step; or give the '
        "loop `labkit.watch_loader(loader, probe)` in the place of its loader; {fact:dataset_size,workers}; `ids_at=` where "
        "augmentation or padding changes what is read; {fact:data_rank} where a group of ranks holds one model together "
        "(tensor, pipeline parallelism) and is to read the same",
    ),
    Row(
        "Was validated on what was trained on?",
        ("validation-leak",),
        'samples: `probe.seen("validation", epoch, batch)` besides, or '
        '`probe.batches(loader, epoch=epoch, name="validation")`',
    ),
    Row(
        "Does the device wait for data?",
        ("starved-input",),
        'spans: `probe.batches(loader)` times each fetch; else `with probe.span("fetch", "data"):`',
    ),
    Row(
        "Did the loss, a gradient or a weight become NaN?",
        ("non-finite",),
        'a scalar: {scalar:loss_local}, as in `probe.scalar("loss_local", loss.item())`',
    ),
    Row(
        "Does the scaler skip more steps than it must, or is clipped before unscaling?",
        ("skipped-steps", "clip-before-unscale"),
        "`watch = labkit.watch_precision(model, optimizer, probe, scaler=scaler)` before the loop, `watch.close()` after "
        "it; or by yourself at each update the counts {count:updates,scaler_steps,gradient_elements}, and the scalars "
        "{scalar:scale} and {scalar:grad_norm} as the optimizer takes it; {fact:clip_norm}",
    ),
    Row(
        "Does the loss stand still although weights move?",
        ("stale-casts",),
        "one batch several times in a row, through `probe.batches`; {scalar:loss_local}; and `labkit.watch_precision`, as "
        "above, or the counts {count:updates,gradient_elements,weights_unchanged}",
    ),
    Row(
        "Is communication hidden, is `no_sync` where it belongs, does a rank come late?",
        (
            "exposed-communication",
            "missing-no-sync",
            "misplaced-no-sync",
            "per-parameter-reduction",
            "needless-find-unused",
            "late-rank",
        ),
        "`watch = labkit.watch_ddp(ddp, probe, optimizer=optimizer)` before the loop, `watch.close()` after it, and "
        '`probe.digest("weights", ddp.parameters())` at the end',
    ),
    Row("Is one rank slower than the others?", ("straggler",), 'spans: `with probe.span("all_reduce", "comm"):`'),
    Row(
        "How stale are gradients, and does it harm?",
        ("stale-gradients",),
        "scalars: {scalar:version_pulled,version_pushed,loss_local}",
    ),
    Row(
        "Did the ranks begin with equal weights?",
        ("unequal-init",),
        '`probe.digest("initial_weights", model.parameters())` before the model is wrapped',
    ),
    Row(
        "Does each rank clip by a norm of its own?",
        ("per-rank-norm",),
        "a scalar: {scalar:grad_norm}, what `clip_grad_norm_` returns; {fact:local_steps} where ranks train apart on "
        "purpose",
    ),
    Row(
        "Does the optimizer hold the sharded weights?",
        ("optimizer-before-sharding",),
        "`labkit.watch.tell_known_parameters(model, optimizer, probe)` once both are made: the event "
        "{event:optimizer_knows}",
    ),
    Row(
        "Was work lost at a restart, did the state come back, are saves too frequent, do ranks save to one path?",
        ("lost-work", "resume-departs", "checkpoint-interval", "single-path", "local-disk"),
        "the events {event:save,load,state}: `with labkit.watch.watch_save(probe, step, path):`, `watch_load` and "
        "`tell_state` write them; after a restart a file of its own, `rank-00000.attempt1.jsonl`, by "
        "`Probe(path, attempt=1)` and `probe.resume_at(step)`; {fact:mtbf_s}",
    ),
    Row(
        "Has each rank a core of its own?",
        ("cores",),
        "declared: {fact:cores} (`os.cpu_count()`), and `Probe(…, threads=torch.get_num_threads())`",
    ),
    Row(
        "Does a counter see the FLOPs that the formula counts?",
        ("flop-convention",),
        "declared: {fact:matmul_params,layers,hidden,seq,counted_flops_per_token}",
    ),
)


def table() -> str:
    """The table as Markdown, without a line's end."""
    return "\n".join([HEAD, "|---|---|---|", *(row.markdown for row in ROWS)])


def unasked(uses: Uses) -> list[str]:
    """Names that a row tells to record, and that are no names, or that nothing beside its detectors asks for."""
    asked = uses.places(writes=False)
    found = []
    for row in ROWS:
        topics = {
            path.parent.name for name in row.detectors for path in PACKAGE.glob(f"detect/*/{name.replace('-', '_')}.py")
        }
        for sort, name in sorted(row.names):
            files = asked.get((sort, name), set())
            near = any(file.split("/")[1] in topics or file.count("/") == 1 for file in files if file.startswith("detect/"))
            if not (known(sort, name) and near):  # pyright: ignore[reportArgumentType]
                found.append(f"{row.detectors[0]}: {sort} {name}")
    return found
