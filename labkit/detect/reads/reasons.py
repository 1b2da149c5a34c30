"""What the questions about reads say."""

from __future__ import annotations

from ..catalogue import Reason
from .reasons_seen_outside import SAME_INDEX, WORKER_RANDOM_NUMBERS

_RECORD_SAMPLES = "record each batch with probe.samples(name, batch) or read it through probe.batches(loader)"
_DECLARE_AND_RECORD = "declare it with probe.declare(dataset_size=...) and record each batch with probe.samples(name, batch)"
_IDS_DECIDE = "record the samples' ids too, with ids_at= or probe.samples(name, batch, ids), and the ids decide"
_NAME_THE_PASS = 'give a pass that does not train a name of its own: probe.batches(loader, name="validation")'
_WHOLE_EPOCH = "run a whole epoch (no cap on the steps)"
_DISTRIBUTED_SAMPLER = (
    "give the DataLoader a DistributedSampler(data, world_size, rank) instead of shuffle=True, and call "
    "sampler.set_epoch(epoch) at the start of each epoch"
)
_SET_EPOCH = "call sampler.set_epoch(epoch) at the start of each epoch, on the object that draws the permutation"
_SHARD_ONCE = "shard once: give the whole data set to one DistributedSampler, and let no other wrapper split its output"
_ASK_FOR_THE_WORKER = (
    "in the IterableDataset's __iter__, take every (W·workers)-th item: index by rank and by "
    "torch.utils.data.get_worker_info()"
)

SHARED = {
    "no-samples-recorded": Reason("the program recorded no samples", _RECORD_SAMPLES),
    "nothing-read-in-epoch": Reason("nothing was read in this epoch", "run a whole epoch"),
    # what ids and hashes of the content cannot settle
    "contents-change": Reason(
        "{samples:plural sample was/samples were} read with {different:,} different contents: a sample is not the same "
        "each time (augmentation, padding to a batch), and hashes of the content cannot tell that it came again",
        _IDS_DECIDE,
    ),
    "ids-are-doubtful": Reason(
        "ranks read the same ids, but never the same content under one: the ids may number each rank's own part of the "
        "data, or the content changes each time (augmentation)",
        "give each sample of the whole data an id of its own, the same on all ranks, and run 2 epochs",
    ),
    # which epoch, or which part of one
    "epoch-number": Reason("epoch {epoch}"),
    "pass-of-epoch": Reason("pass {part} of epoch {epoch}"),
    "stretch-number": Reason("stretch {part}"),
    # in which epochs, passes or stretches of an endless epoch something holds: the end of a cause
    "in-all-epochs": Reason(", in all {parts:plural epoch/epochs}"),
    "in-all-passes": Reason(", in all {parts:plural pass/passes}"),
    "in-all-stretches": Reason(", in all {parts:plural stretch/stretches}"),
    "from-epochs": Reason(", from {first} on: in {found} of {parts:plural epoch/epochs}"),
    "from-passes": Reason(", from {first} on: in {found} of {parts:plural pass/passes}"),
    "from-stretches": Reason(", from {first} on: in {found} of {parts:plural stretch/stretches}"),
    "first-in-epochs": Reason(", first in {first}: in {found} of {parts:plural epoch/epochs}"),
    "first-in-passes": Reason(", first in {first}: in {found} of {parts:plural pass/passes}"),
    "first-in-stretches": Reason(", first in {first}: in {found} of {parts:plural stretch/stretches}"),
    "part-cut-short": Reason("; {parts:and} was cut short and cannot be judged"),
    "parts-cut-short": Reason("; {parts:and} were cut short and cannot be judged"),
    "from-epoch-on": Reason(", from epoch {epoch} on"),
}

COVERAGE = {
    "reads-not-recorded": Reason("the program did not record which samples were read", _DECLARE_AND_RECORD),
    "dataset-size-not-recorded": Reason("the program did not record the data set's size", _DECLARE_AND_RECORD),
    "nothing-is-read": Reason(
        "epochs end without a batch: nothing is read, and nothing trained",
        "look whether a rank has fewer samples than a batch and drop_last=True drops them: take a smaller batch, or keep "
        "the last one",
    ),
    "iterator-used-up": Reason(
        "{empty:plural epoch/epochs} of {epochs}, the first of them epoch {first}, ended without a batch: nothing was read, "
        "and nothing trained",
        "give each epoch an iterator of its own: a generator, or iter(loader), is used up after one pass",
    ),
    "every-sample-read": Reason("every sample is read"),
    "epoch-cut-short": Reason(
        "the run ended before the epoch did, and what was not read could still have come",
        'run a whole epoch (no cap on the steps); in a loop of your own say probe.event("epoch_end", epoch=epoch) after the '
        "last batch",
    ),
    "only-a-tail-dropped": Reason(
        "all is read but for a dropped tail of {missing:plural sample/samples}, less than a global batch"
    ),
    # other epochs read what this one leaves out
    "read-whole-later": Reason(
        "epoch {epoch} leaves out {missing:plural sample/samples}, as a curriculum or a resumed epoch does, and epoch "
        "{whole} reads every sample"
    ),
    "one-epoch-leaves-out": Reason(
        "epoch {epoch} leaves out {missing:plural sample/samples}, and epochs before and after it read all",
        "look at what is different in this epoch; if it is to read a part of the data, all is well",
    ),
    "part-after-part": Reason("epochs read one part of the data after the other, and together all of it"),
    "part-after-part-so-far": Reason(
        "epochs read one part of the data after the other; but the run ended before all was read, or parts so small are "
        "apart by chance",
        "run as many epochs as it takes to read all of the data once",
    ),
    # none does
    "as-many-reads-some-equal": Reason(
        "as many samples were read as the data set holds, but some are equal: copies in the data, or reads repeated in "
        "place of others; hashes of the content cannot tell",
        _IDS_DECIDE,
    ),
    "every-sample-read-by-content": Reason("by their contents all samples are read; several loaders use the same ids"),
    "loaders-may-share-ids": Reason(
        "fewer ids are read than there are samples, but enough contents: several loaders were read, and the data of each "
        "may count ids from 0",
        "give each sample of all the data an id of its own",
    ),
    "some-repeated-in-place-of-others": Reason(
        "an epoch does not read {missing:plural sample/samples}, and repeats others, as drawing with replacement does",
        "draw without replacement for one epoch, and judge that",
    ),
    "never-read": Reason(
        "{missing:,} of {samples:plural sample/samples} are never read, while others are read more than once",
        "build the ranks' shares from one permutation, and one split, that are the same on every rank",
    ),
    "sharded-twice": Reason(
        "an epoch reads {read:,} samples of {samples:,}, about 1/{ranks}: each rank takes its share of a share", _SHARD_ONCE
    ),
    "cut-by-rank-and-by-sampler": Reason(
        "each rank holds rows that no other has ({held:and}; the source cuts them at {cut}), and a DistributedSampler lets "
        "it read 1/{ranks} of these: a rank's share of its share",
        "read the rank's own rows with shuffle=True and without a DistributedSampler; or give the sampler the whole data "
        "set on every rank",
    ),
    "sampler-over-own-rows": Reason(
        "each rank holds rows that no other has ({held:and}), and a DistributedSampler lets it read 1/{ranks} of these in "
        "an epoch",
        "if these rows are a rank's part of the data, leave the DistributedSampler out; if all ranks are to hold the "
        "same data, seed what makes them alike",
    ),
    "part-of-the-data": Reason("an epoch reads {read:,} samples of {samples:,}", _SHARD_ONCE),
}

RANK_DUPLICATES = {
    "no-other-rank-reads": Reason("one rank cannot repeat what another reads", "run with 2 ranks or more"),
    "all-ranks-share-one-share": Reason(
        "all ranks declared the same data_rank: they are to read one share of the data, and no other rank reads any"
    ),
    "rank-off-its-group": Reason(
        "rank {rank} does not read what the other ranks of data_rank {group} read, though they hold one model together",
        "give the sampler the data-parallel rank and size of the mesh, and one seed; the same on all ranks of a group",
    ),
    "ranks-share-out-first-pass-only": Reason(
        "the ranks share out what the first loader of an epoch gives, and in {part} they read the same, as an evaluation "
        "of all the data on each rank does",
        _NAME_THE_PASS,
    ),
    "ranks-may-hold-parts": Reason(
        "ranks read the same data, and hold different parts of a model, which then is as it should be",
        "if each rank is to hold the whole model, look at why their weights differ; else say what belongs together with "
        "probe.declare(data_rank=...)",
    ),
    "ranks-take-parts-of-a-batch": Reason(
        "all ranks read each batch whole, and each gives its model a part of it that is its own"
    ),
    # by what modules are given, where no loader is seen
    "ranks-fed-the-same": Reason(
        "in every step the models of all {ranks} ranks are given the same batch: they do the work of one",
        "let each rank draw batches of its own: take the rows rank::world_size of one permutation, or seed what draws them "
        "by seed + rank, after the model is made",
    ),
    "ranks-fed-the-same-rows": Reason(
        "each rank goes through the same rows for itself, in an order of its own: {ranks} ranks do the work of one",
        "draw one permutation, seeded alike on every rank, and let each rank take its part of it: "
        "permutation[rank::world_size]",
    ),
    "one-batch-on-all-ranks": Reason(
        "the models of all ranks are given one and the same batch in every step, as a benchmark does",
        "run it on the data that you train on; and let each rank take its part of them",
    ),
    "too-few-different-rows": Reason(
        "modules are given so few different rows that ranks may have the same by chance",
        "run it on the data that you train on",
    ),
    "ranks-fed-apart": Reason("no row is given to two ranks before all ranks have gone through their own"),
    # the same, step by step
    "ranks-identical": Reason(
        "in every step all {ranks} ranks read the same samples in the same order: they do the work of one",
        _DISTRIBUTED_SAMPLER,
    ),
    "ranks-identical-in-most-steps": Reason(
        "in {share:.0%} of the steps all {ranks} ranks read the same samples in the same order: they do the work of one",
        _DISTRIBUTED_SAMPLER,
    ),
    "some-ranks-identical": Reason(
        "{groups} read the same samples in the same order, at every step: such a group does the work of one rank",
        "give the sampler of each its own rank of all (dist.get_rank(), not the local or the node's rank). Where a group "
        "holds one model together (tensor or pipeline parallelism) this is as it should be: say so with "
        "probe.declare(data_rank=...)",
    ),
    "these-ranks": Reason("{ranks:all rank/ranks}"),
    # samples that several ranks read
    "shared-out-but-equal-samples": Reason("the ranks share the data out; a few samples are equal"),
    "ranks-read-equal-samples": Reason(
        "ranks read equal samples, but the data set itself may hold equal samples: hashes of the content cannot tell one "
        "from the other",
        _IDS_DECIDE,
    ),
    "one-filled-step": Reason(
        "the epoch is one step with {repeated:plural repeated read/repeated reads}: a loader that fills its last batch up "
        "from the start makes them too",
        "use a smaller batch or more data, so that an epoch has several steps",
    ),
    "meetings-as-with-replacement": Reason(
        "ranks read each other's samples no more often than they would by drawing with replacement",
        "draw without replacement for one epoch, and judge the whole of it",
    ),
    "each-rank-trains-on-all": Reason(
        "each rank reads all of the data, and trains a model of its own: an ensemble does so",
        "if one model is meant, give the DataLoader a DistributedSampler, and wrap the model in DistributedDataParallel",
    ),
    "list-may-repeat-samples": Reason(
        "some samples are read several times, by one rank as often as by several: that is what a list looks like that "
        "holds them several times (oversampling) and is shared out",
        "judge one epoch of the plain list; or give each entry of the list an id of its own",
    ),
    "each-rank-reads-all": Reason(
        "the {ranks} ranks together read {times:.1f} times the data set in one epoch: each goes through all of it in an "
        "order of its own",
        _DISTRIBUTED_SAMPLER,
    ),
    "shares-overlap": Reason(
        "{shared:,} reads are of samples that another rank reads too, {share:.0%} of all: the ranks' shares of the data "
        "overlap",
        "build the shares from one permutation that is the same on every rank, and take every W-th of it, as "
        "DistributedSampler does",
    ),
    # samples that no two ranks read
    "only-padding-shared": Reason("no sample is read by two ranks, but for the sampler's padding"),
    "only-filling-shared": Reason("no sample is read by two ranks, but for what fills the last batches up"),
    "ranks-never-meet": Reason(
        "no sample is read by two ranks, where ranks that each shuffle all data would have met often"
    ),
    "ranks-never-meet-in-any-epoch": Reason(
        "in none of {epochs} epochs that were read in part do two ranks read a sample, where ranks that each shuffle all "
        "data would have met often"
    ),
    "too-few-reads-to-meet": Reason(
        "no sample was read twice, but the run saw only {read:,} of {samples:plural sample/samples}: ranks that each "
        "shuffle all data need not have met yet",
        "run a whole epoch, or more steps",
    ),
    "cut-short-and-size-unknown": Reason(
        "no sample was read twice, but the run ended before the epoch did, and the data set's size is not known",
        "run a whole epoch, or declare dataset_size",
    ),
}

WORKER_DUPLICATES = {
    "one-batch-again-and-again": Reason(
        "every one of {steps} steps reads the same {samples:plural sample/samples}",
        "make the iterator once an epoch (for batch in loader); next(iter(loader)) in the loop starts over each time. "
        "Where one batch was chosen to see whether a model can learn it, this is expected",
    ),
    "each-worker-yields-all": Reason(
        "a rank reads every sample {times} times in one epoch: each of its {times} workers yields all of its data",
        _ASK_FOR_THE_WORKER,
    ),
    "each-worker-of-one-rank-yields-all": Reason(
        "rank {rank} reads every sample {times} times in one epoch: each of its {times} workers yields all of its data",
        _ASK_FOR_THE_WORKER,
    ),
    "every-sample-several-times": Reason("a rank reads every sample {times} times in one epoch", _ASK_FOR_THE_WORKER),
    "every-sample-several-times-on-one-rank": Reason(
        "rank {rank} reads every sample {times} times in one epoch", _ASK_FOR_THE_WORKER
    ),
    "each-sample-once": Reason("each rank reads a sample at most once an epoch"),
    "each-sample-once-but-equal-ones": Reason("each rank reads a sample at most once an epoch; a few samples are equal"),
    "workers-may-repeat-later": Reason(
        "no rank repeated a sample, but the run ended before the epoch, and workers may repeat later", "run a whole epoch"
    ),
    "repeats-uneven": Reason(
        "ranks read samples repeatedly, but not all equally often: sampling with replacement does that",
        "record the samples' ids too, with ids_at= or probe.samples(name, batch, ids), and run a whole epoch without "
        "replacement",
    ),
    "repeats-or-copies": Reason(
        "ranks read every content equally often, but the data set itself may hold copies: hashes of the content cannot tell",
        "record the samples' ids too, with ids_at= or probe.samples(name, batch, ids), and run a whole epoch without "
        "replacement",
    ),
    "repeats-too-few": Reason(
        "ranks read every sample equally often, but the samples are too few to rule out sampling with replacement",
        "record the samples' ids too, with ids_at= or probe.samples(name, batch, ids), and run a whole epoch without "
        "replacement",
    ),
}

ORDER = {
    "too-few-epochs": Reason(
        "the run has {epochs:plural epoch/epochs} with samples", "run 2 epochs or more, without a cap on the steps"
    ),
    "epoch-is-never-set": Reason(
        "a DistributedSampler shuffles, a loop at {loop} reads it again and again, and nothing in the source calls "
        "set_epoch: each epoch comes in the order of the first",
        "call sampler.set_epoch(epoch) as each epoch begins",
    ),
    "epoch-may-need-setting": Reason(
        "a DistributedSampler shuffles, and nothing in the source calls set_epoch: the run has one epoch, and a second one "
        "would come in the same order",
        "call sampler.set_epoch(epoch) as each epoch begins",
    ),
    "later-pass-in-one-order": Reason(
        "the first loader of an epoch comes in a new order each time, and another always in the same one, as an "
        "evaluation does",
        _NAME_THE_PASS,
    ),
    # a run that counts no epochs
    "no-epochs-counted": Reason(
        "the program counts no epochs, and no rank's order begins again",
        "give each step its epoch: probe.batches(loader, epoch=epoch) or probe.begin_step(epoch)",
    ),
    "order-begins-again": Reason(
        "a rank's order begins again after {samples:plural sample/samples}, exactly: every pass over the data comes in "
        "the order of the one before",
        _SET_EPOCH,
    ),
    # no order that could change, or too few orders to tell
    "chance-may-repeat-an-order": Reason(
        "{second} comes in the order of {first}, but so few samples have few orders, and chance may repeat one",
        "run two whole epochs of more data",
    ),
    "every-step-the-same-batch": Reason(
        "every step reads the same batch: there is no order that could change",
        "read the data, and not one batch of them, for two epochs",
    ),
    "epoch-is-one-step": Reason(
        "the order is the same in {second} as in {first}, but an epoch is one step: there is no order of steps that could "
        "change",
        "use a smaller batch or more data, so that an epoch has several steps: a sampler that never hears of the next epoch "
        "then shows",
    ),
    # orders that repeat
    "not-shuffled": Reason(
        "the loader does not shuffle: samples come in the order in which they are stored",
        "shuffle: DistributedSampler(data, shuffle=True), or shuffle=True on one rank; with a sampler " + _SET_EPOCH,
    ),
    "stream-in-one-order": Reason(
        "the data set is a stream without a length, and gives its samples in the same order in each epoch; no sampler could "
        "shuffle it",
        "where the order is not meant, shuffle within the stream by a seed that changes with the epoch",
    ),
    "second-epoch-repeats-order": Reason(
        "the second epoch repeats the first one's order exactly: the sampler never hears which epoch it is", _SET_EPOCH
    ),
    "order-repeats": Reason(
        "{second} repeats {first}'s order exactly: the sampler never hears which epoch it is", _SET_EPOCH
    ),
    "second-epoch-repeats-global-batches": Reason(
        "the second epoch repeats the first one's global batches one by one, only dealt out to other ranks: the permutation "
        "never changes",
        _SET_EPOCH,
    ),
    "global-batches-repeat": Reason(
        "{second} repeats {first}'s global batches one by one, only dealt out to other ranks: the permutation never changes",
        _SET_EPOCH,
    ),
    "in-epochs-after-another": Reason(", in {again} of {epochs:plural epoch/epochs} that have one before them"),
    # new orders
    "second-epoch-in-another-order": Reason("the second epoch comes in another order than the first"),
    "each-epoch-in-another-order": Reason("none of {epochs} epochs comes in the order of one before it"),
    "no-sample-comes-again": Reason(
        "no sample of the first epoch comes again in the second: the data are others, or their contents change each time "
        "(augmentation, padding), and then hashes show no order",
        _IDS_DECIDE,
    ),
}

VALIDATION_LEAK = {
    "no-validation-recorded": Reason(
        "the program recorded no validation samples",
        "hold some data out (--set val_share=0.2) and record it with probe.seen('validation', epoch, batch)",
        "record what you validate on with probe.seen('validation', epoch, batch)",
    ),
    "validation-kept-apart": Reason("no validation sample is trained on by any rank"),
    "validation-kept-apart-so-far": Reason(
        "no validation sample was trained on, but the run ended before the epoch did", _WHOLE_EPOCH
    ),
    "leak-or-copies": Reason(
        "some validation samples equal training samples, but no more of them than copies in the data set may explain",
        _IDS_DECIDE,
    ),
    "two-data-sets-may-share-ids": Reason(
        "every validation sample has the id of a training sample, and none its content: two data sets may each count ids "
        "from 0, or the content changes each time (augmentation)",
        "give each sample of all the data an id of its own, or leave the ids of the validation out",
    ),
    "validation-is-the-training-data": Reason(
        "what is evaluated is the training data itself, {validation:plural sample/samples}: a score on them, or a mistake",
        "if this is to be the score on unseen data, give the evaluation a data set of its own",
    ),
    "trained-on-after-the-last-validation": Reason(
        "{leaked:,} of {validation:plural validation sample/validation samples} are trained on, but only after the last "
        "validation that holds them, as in a last training on all data: the scores before it stand",
        "if that is not what you do, look at what is split off in the last epochs",
    ),
    "split-differs-by-rank": Reason(
        "{leaked:,} of {validation:,} validation samples are trained on by some rank: the score is not one of unseen data",
        "split once, with a seed that is the same on every rank: torch.Generator().manual_seed(seed), not seed + rank",
    ),
    "split-overlaps": Reason(
        "{leaked:,} of {validation:,} validation samples are trained on by some rank: the score is not one of unseen data",
        "look at how the two parts are made: a rank trains on what it holds out itself, so their indices overlap; "
        "assert not set(train_indices) & set(validation_indices)",
    ),
}

REASONS = (
    SHARED | COVERAGE | RANK_DUPLICATES | WORKER_DUPLICATES | ORDER | VALIDATION_LEAK | WORKER_RANDOM_NUMBERS | SAME_INDEX
)
