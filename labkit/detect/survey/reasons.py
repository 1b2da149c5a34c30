"""What the questions about the machine say."""

from __future__ import annotations

from ..catalogue import Reason

_SURVEY = "run `labkit run start-here`"
_FOR_SPEEDS = "for speeds, run at most {units:plural rank/ranks} here; counts and weights hold anyway"
_ANOTHER_FILE_SYSTEM = "keep the record on another file system, with --record DIR, and measure again"

CORES = {
    "one-rank-shares-with-none": Reason("one rank shares its cores with no other", "run on 2 ranks or more"),
    "cores-not-recorded": Reason(
        "the program did not record how many cores there are", "declare it with probe.declare(cores=...)"
    ),
    "gpus-not-recorded": Reason(
        "the program did not record how many GPUs there are", "declare it with probe.declare(num_gpus=...)"
    ),
    "ranks-share-cores": Reason(
        "{ranks} ranks share {units:plural core/cores}: times show the order of events, not the speed of a cluster",
        _FOR_SPEEDS,
    ),
    "ranks-share-gpus": Reason(
        "{ranks} ranks share {units:plural GPU/GPUs}: times show the order of events, not the speed of a cluster",
        _FOR_SPEEDS,
    ),
    "more-threads-than-cores": Reason(
        "{ranks:plural rank has/ranks have} {threads} threads on {units:plural core/cores}: they may hinder each other",
        "give each rank at most {most:plural thread/threads} (OMP_NUM_THREADS, torch.set_num_threads)",
    ),
    "a-core-for-each-rank": Reason("{ranks:plural rank/ranks} on {units:plural core/cores}"),
    "a-gpu-for-each-rank": Reason("{ranks:plural rank/ranks} on {units:plural GPU/GPUs}"),
}

LINK_FIT = {
    "no-link-measured": Reason("the record has no measurement of a link", _SURVEY),
    "one-rank-has-no-link": Reason("one rank has no link: it sends nothing", "measure with --ranks 2 or more"),
    "too-few-message-sizes": Reason(
        "{sizes:plural message size was/message sizes were} measured, and a fit of two numbers needs {least} or more",
        "measure up to a larger message, as with --set max_message_mib=16",
    ),
    "no-bandwidth-resolved": Reason(
        "no message was large enough to show a bandwidth", "measure up to a larger message, as with --set max_message_mib=64"
    ),
    "fit-is-near": Reason("the fit is off by {off:.0%} at most, and {good:.0%} would still tell which links are the limit"),
    "noise-can-hide-the-line": Reason(
        "{told}, and repeats of that size scatter by {scatter:.0%}: noise can hide the line",
        "end what else runs here, give more time (--set budget_s=30), and measure again",
    ),
    "no-single-line": Reason(
        "{told}, while its repeats scatter by {scatter:.0%} only: the link follows no single line",
        "read times off the measured curve between its points, and do not extrapolate from the fit",
    ),
    # how far the fit is off
    "fit-says-more": Reason("for {size:plural byte/bytes} the fit says {off:.0%} more than was measured"),
    "fit-says-less": Reason("for {size:plural byte/bytes} the fit says {off:.0%} less than was measured"),
}

PAGE_CACHE = {
    "no-storage-measured": Reason("the record has no measurement of storage", _SURVEY),
    "file-lay-in-memory": Reason(
        "the file lay on {file_system}, which is memory", "keep the record on a disk, with --record DIR, and measure again"
    ),
    "page-cache-not-declared": Reason(
        "whether the page cache was kept out was not declared", "declare cache_bypass, as labkit start-here does"
    ),
    "page-cache-in-the-way": Reason(
        "the page cache could not be kept out, so that the file just written was read from memory", _ANOTHER_FILE_SYSTEM
    ),
    "pages-stayed-in-cache": Reason(
        "the kernel kept {share:.0%} of the pages that it was asked to drop", _ANOTHER_FILE_SYSTEM
    ),
    "as-fast-as-memory": Reason(
        "the file was read about as fast as memory is copied: a cache below this system may hold it",
        "read a file larger than the host's memory, as with --set storage_mib=65536, or another disk",
    ),
    "page-cache-kept-out": Reason("page cache {how}"),
}

REASONS = CORES | LINK_FIT | PAGE_CACHE
