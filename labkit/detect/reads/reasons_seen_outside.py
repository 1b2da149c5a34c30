"""What the questions about reads say that only the doctor's watchers can answer."""

from __future__ import annotations

from ..catalogue import Reason

SAME_INDEX = {
    "no-other-rank-to-compare-indices": Reason("one rank has no other to compare indices with", "run with 2 ranks or more"),
    "indices-of-a-lab": Reason(
        "the ranks of a lab number one list of samples", "run a script of your own under `labkit doctor`"
    ),
    "no-indices-recorded": Reason(
        "the indices of what each rank read were not recorded",
        "run the script under `labkit doctor`, with a data set that is read by index",
    ),
    "index-is-another-sample": Reason(
        "{moved} of {shared:plural sample that two ranks read has/samples that two ranks read have} another index on each: "
        "the ranks list the data in different orders, and a sampler shares out indices",
        "sort what is listed: sorted(os.listdir(folder)), sorted(set(names)); or list it on rank 0 and broadcast the list",
    ),
    "label-is-another": Reason(
        "{differ} of {shared:plural sample that two ranks read has/samples that two ranks read have} another label on each: "
        "the ranks number the classes differently",
        "number the classes in an order that is the same everywhere: enumerate(sorted(set(names)))",
    ),
    "no-sample-read-by-two-ranks": Reason(
        "no sample was read by two ranks so far, and so nothing shows whether an index means the same on both",
        "run 2 epochs, with sampler.set_epoch(epoch)",
    ),
    "indices-mean-the-same": Reason("an index means the same sample, with the same label, on every rank"),
}

WORKER_RANDOM_NUMBERS = {
    "no-worker-draws": Reason(
        "no two workers of a loader were seen to draw random numbers",
        "run it as you train, with num_workers=2 or more and whatever is random in the data set",
    ),
    "workers-share-a-generator": Reason(
        "{workers} workers of the loader draw the same random numbers: each has a copy of the generator {name}, and starts "
        "from the same state, in each epoch anew",
        "make the generator in each worker, out of torch.initial_seed(): in worker_init_fn, or when __getitem__ is called "
        "first; or use torch's, numpy's or Python's own, which torch seeds in each worker",
    ),
    "workers-seeded-alike": Reason(
        "{workers} workers of the loader draw the same random numbers: something seeds {name} alike in each of them",
        "seed in worker_init_fn by torch.initial_seed() % 2**32, which differs from worker to worker and epoch to epoch; or "
        "leave it to torch",
    ),
    "workers-draw-the-same-again": Reason(
        "each time the workers are started they draw the same random numbers from {name}: augmentations of one epoch come "
        "again in the next",
        "seed in worker_init_fn by torch.initial_seed() % 2**32, which is new in each epoch, unless this is meant",
    ),
    "workers-draw-their-own": Reason("each worker draws random numbers of its own, new in each epoch"),
}
