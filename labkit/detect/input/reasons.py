"""What the questions about input say."""

from __future__ import annotations

from ..catalogue import Reason

_QUIET = "run more steps on a quiet machine"
_MORE_STEPS = "run {least} steps or more"
_WITHOUT_WORKERS = "run once without workers (num_workers=0)"

STARVED_INPUT = {
    "no-fetching-recorded": Reason(
        "the program recorded no fetching of data", "record each batch by reading it through probe.batches(loader)"
    ),
    "too-few-steps-to-tell-waiting": Reason(
        "{steps:plural step after the first is/steps after the first are} too few to tell waiting from noise", _MORE_STEPS
    ),
    "batch-is-there": Reason("a batch is there after {wait_ms:.2g} ms"),
    "little-waiting": Reason("{share:.1%} of a step is spent waiting for data"),
    "next-to-nothing-computed": Reason(
        "a rank computes {compute_ms:.2g} ms on a batch: a step does next to nothing but fetch data",
        "record a run that trains: forward and backward pass within the step",
    ),
    "waiting-varies": Reason(
        "waiting takes {low:.0%} to {high:.0%} of a step from one stretch of the run to the next, on both sides of "
        "{limit:.0%}",
        _QUIET,
    ),
    "wait-too-short-to-blame": Reason(
        "a rank waits {wait_ms:.3g} ms for a batch, {share:.0%} of its step: such a short wait may be a batch that comes "
        "from a worker, or another program that ran for a moment",
        "run it on the model and the machine that you train on; longer steps show whether they wait for data",
    ),
    "loader-hindered": Reason(
        "waiting takes {share:.0%} of a step, and other programs take cores from whatever prepares the data", _QUIET
    ),
    "no-faster-on-one-batch": Reason(
        "{share:.0%} of a step is spent waiting for data, and yet a run on one ready batch is no faster",
        "repeat both on a quiet machine; then look for what else a step waits for",
    ),
    "ranks-wait-for-data": Reason(
        "a rank waits {wait_ms:.3g} ms for a batch and computes {compute_ms:.3g} ms on it", "{remedy}"
    ),
    "one-rank-waits-for-data": Reason(
        "rank {rank} waits {wait_ms:.3g} ms for a batch and computes {compute_ms:.3g} ms on it", "{remedy}"
    ),
    # what follows
    "longer-than-the-model": Reason(": data take longer than the model"),
    "faster-on-one-batch": Reason("; on one ready batch the run is {gain:.1f} times as fast"),
    # what to do
    "take-workers-away": Reason("take the workers away (num_workers=0): without them this run is faster"),
    "read-the-store-once": Reason(
        "keep what was read on the local disk (or in memory), so that the store is read once and not each epoch"
    ),
    "look-for-a-lock": Reason(
        "ranks get their data one after the other: look for a lock or a file that they share, and take it away"
    ),
    "prepare-ahead": Reason(
        "prepare ahead: num_workers=2 and more, persistent_workers=True; where all cores are busy already, prepare each "
        "sample once and keep it"
    ),
    "workers-cannot-keep-up": Reason(
        "{workers:plural worker/workers} cannot keep up: more of them where preparing waits for something, a cache of "
        "prepared samples where it keeps the cores busy"
    ),
}

CROSS_PROCESS_LOCK = {
    "one-rank-waits-for-none": Reason("with one rank there is no other to wait for", "run with 2 ranks or more"),
    "workers-fetch-ahead": Reason(
        "workers fetch ahead: how long a rank waits says little of what they wait for", _WITHOUT_WORKERS
    ),
    "no-rank-alone": Reason(
        "the record holds no run of one rank alone to compare with",
        "run it with --set compare=all, or once more with --ranks 1",
        "start it on one rank too, and compare the data spans of the two runs",
    ),
    "too-few-fetches": Reason("{steps:plural step is/steps are} too few to judge by", _MORE_STEPS),
    "ranks-fetch-beside-each-other": Reason(
        "ranks that fetch at the same time are as fast as one alone, or several are served at a time"
    ),
    "fetches-in-turn": Reason(
        "fetches end one after the other, half a fetch apart or more, whichever rank they are of, and take {times:.1f} "
        "times as long as alone",
        "find what all processes of this host take in turn (a file lock, a multiprocessing lock, a database of one writer) "
        "and let each rank have its own, or hold it for less of the work; a threading.Lock is not it",
    ),
    "work-of-all-ranks": Reason(": {ranks} ranks do {gain:.2f} times the work of one"),
    "fetches-share-equally": Reason(
        "fetches take longer when ranks fetch at the same time, but end together: ranks share something equally, not in turn"
    ),
    "store-serves-in-turn": Reason(
        "fetches take longer when other ranks fetch too, and all come from one store over one link, which also serves "
        "requests in turn: a lock looks the same",
        "read from a local copy, and look whether fetches still come one after the other",
    ),
    "in-turn-or-equally": Reason(
        "fetches take longer when ranks fetch at the same time, and noise hides whether they fetch in turn or share "
        "something equally",
        _QUIET,
    ),
}

SATURATED_STORE = {
    "no-store-bytes": Reason(
        "the program counted no bytes read from a store", 'count them: probe.count("store_bytes", num_bytes)'
    ),
    "no-reader-alone": Reason(
        "there is nothing to compare with: this takes a run of several ranks, and one of a rank that reads alone",
        "run with 2 ranks or more and --set compare=all",
        "start it on one rank too, and compare the bytes a second of the two runs",
    ),
    "workers-read-ahead": Reason(
        "workers read ahead: how long a rank waits is not how long reading takes", _WITHOUT_WORKERS
    ),
    "store-read-once": Reason("the store is read in the first epoch only"),
    "too-few-store-reads": Reason("too few steps read from the store", _MORE_STEPS),
    "store-at-its-limit": Reason(
        "{ranks} ranks together read {times:.2f} times what one reads alone: each gets 1/{ranks} of it, and further ranks "
        "would get less",
        "keep what was read on each host's own disk (a cache), so that the store is read once; or a store whose rate grows "
        "with its readers",
    ),
    "store-gives-more": Reason("{ranks} ranks together read {times:.2f} times what one reads alone"),
    "store-near-its-limit": Reason(
        "{ranks} ranks together read {times:.2f} times what one reads alone: the store is near its limit, or this is noise",
        "run with more ranks, or more steps",
    ),
}

NEEDLESS_WORKERS = {
    "no-workers": Reason("the run has no workers, or does not say", "declare workers=..."),
    "no-run-without-workers": Reason(
        "the record holds no run without workers to compare with",
        "run it once with num_workers=0, here by --set compare=all",
        "run it once with num_workers=0, and compare the time of a step",
    ),
    "too-few-steps-to-compare": Reason("too few steps to judge by", _MORE_STEPS),
    "faster-without-workers": Reason(
        "without workers the run is {times:.1f} times as fast: there is little to prepare, and passing batches from process "
        "to process is what takes time",
        "num_workers=0 for data that are ready in memory; better still, index a whole batch of the tensor at once",
    ),
    "faster-with-workers": Reason("with workers the run is {times:.1f} times as fast as without"),
    "as-fast-with-workers": Reason("with and without workers the run is equally fast, within noise"),
    "steps-overlap": Reason("steps with and without workers vary, and overlap, too much to tell which is faster", _QUIET),
}

WORKER_RESTARTS = {
    "no-workers-started": Reason(
        "no workers of a loader were seen to be started twice", "run 2 epochs or more, with num_workers as you train"
    ),
    "workers-start-fast": Reason("starting the loader's workers anew takes {share:.1%} of the run"),
    "workers-started-each-epoch": Reason(
        "the loader's workers are started anew {times:plural time/times}, and each time the first batch comes after "
        "{seconds:.3g} s, where a step takes {step_s:.2g} s",
        "keep them: persistent_workers=True, and one DataLoader for all epochs; and let a worker set up less before its "
        "first sample",
    ),
    "starts-hindered": Reason(
        "starting the loader's workers anew takes {share:.0%} of the run, and other programs take cores from it", _QUIET
    ),
}

REASONS = STARVED_INPUT | CROSS_PROCESS_LOCK | SATURATED_STORE | NEEDLESS_WORKERS | WORKER_RESTARTS
