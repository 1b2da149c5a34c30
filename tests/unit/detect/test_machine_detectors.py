"""The survey's detectors, four ways each: found, clear, inconclusive, not applicable."""

import msgspec

from labkit.detect import detector
from labkit.record.schema import Network

from ..builders import record_of, run_of
from ..surveys import SIZES, compute_run, link_run, storage_run, survey

OTHER_LAB = record_of(run_of([[[[1, 2]], [[3, 4]]]]))


def ask(name, record):
    return detector(name)(record)


def answer(name, record):
    verdict = ask(name, record)
    assert verdict.cause
    return verdict.status, verdict.reason


def with_threads(run, threads, hosts=None):
    ranks = [
        msgspec.structs.replace(
            log, head=msgspec.structs.replace(log.head, threads=threads, host=hosts[i] if hosts else log.head.host)
        )
        for i, log in enumerate(run.ranks)
    ]
    return msgspec.structs.replace(run, ranks=tuple(ranks))


# Can an all-reduce be predicted?


def test_a_link_on_its_line_is_clear():
    verdict = ask("link-fit", survey())
    assert (verdict.status, verdict.reason) == ("clear", "fit-is-near")
    assert verdict.numbers["off"] == verdict.evidence["residual_max"].value < 0.01


def test_a_size_off_the_line_whose_repeats_agree_is_found():
    slow = ask("link-fit", survey(link=link_run(distort={2**20: 4.0})))
    fast = ask("link-fit", survey(link=link_run(distort={2**18: 0.3})))
    for verdict, told, size in ((slow, "fit-says-less", 2**20), (fast, "fit-says-more", 2**18)):
        assert (verdict.status, verdict.reason) == ("found", "no-single-line")
        assert verdict.numbers["told"].key == told and verdict.numbers["told"].numbers["size"] == size
    assert ask("link-fit", survey(link=link_run(distort={2**20: 0.3}))).status == "found"
    assert slow.cause.startswith("for 1,048,576 bytes the fit says ") and "less than was measured, while" in slow.cause


def test_the_same_with_repeats_that_scatter_is_inconclusive():
    verdict = ask("link-fit", survey(link=link_run(distort={2**20: 0.3}, jitter=(0.2, 1.0, 1.1))))
    assert (verdict.status, verdict.reason) == ("inconclusive", "noise-can-hide-the-line")
    assert verdict.numbers["scatter"] == verdict.evidence["scatter_there"].value


def test_too_few_sizes_and_a_bandwidth_that_did_not_show_are_inconclusive():
    few = ask("link-fit", survey(link=link_run(sizes=SIZES[:2])))
    assert (few.status, few.reason, few.numbers) == ("inconclusive", "too-few-message-sizes", {"sizes": 2, "least": 3})
    flat = {size: 1e-3 / (1e-3 + 1e-9 * size) / (1 + i) for i, size in enumerate(SIZES)}
    assert answer("link-fit", survey(link=link_run(distort=flat))) == ("inconclusive", "no-bandwidth-resolved")


def test_one_rank_has_no_link_and_another_lab_measured_none():
    assert answer("link-fit", survey(1)) == ("not_applicable", "one-rank-has-no-link")
    assert answer("link-fit", OTHER_LAB) == ("not_applicable", "no-link-measured")
    assert "--ranks 2" in ask("link-fit", survey(1)).fix


# Does each rank have a core of its own?


def test_ranks_that_outnumber_the_cores_are_found():
    verdict = ask("cores", survey(4, link=link_run(4, cores=2)))
    assert (verdict.status, verdict.reason) == ("found", "ranks-share-cores")
    assert verdict.numbers == {"ranks": 4, "units": 2}
    assert verdict.cause.startswith("4 ranks share 2 cores: ") and "at most 2 ranks here" in verdict.fix


def test_ranks_with_a_core_each_are_clear():
    assert answer("cores", survey(4, link=link_run(4, cores=4))) == ("clear", "a-core-for-each-rank")


def test_threads_that_outnumber_the_cores_are_inconclusive():
    crowded = with_threads(link_run(2, cores=4), threads=4)
    verdict = ask("cores", survey(link=crowded))
    assert (verdict.status, verdict.reason) == ("inconclusive", "more-threads-than-cores")
    assert verdict.numbers == {"ranks": 2, "threads": 8, "units": 4, "most": 2}


def test_hosts_are_counted_apart():
    spread = with_threads(link_run(4, cores=2), 1, hosts=["a", "a", "b", "b"])
    assert ask("cores", survey(4, link=spread)).status == "clear"
    lopsided = with_threads(link_run(4, cores=2), 1, hosts=["a", "a", "a", "b"])
    assert ask("cores", survey(4, link=lopsided)).numbers == {"ranks": 3, "units": 2}


def test_hosts_that_were_made_on_one_machine_share_its_cores():
    spread = survey(4, link=with_threads(link_run(4, cores=2), 1, hosts=["host-0", "host-0", "host-1", "host-1"]))
    network = Network(hosts=2, way="root")
    here = msgspec.structs.replace(spread, provenance=msgspec.structs.replace(spread.provenance, network=network))
    verdict = ask("cores", here)
    assert (verdict.status, verdict.numbers) == ("found", {"ranks": 4, "units": 2})


def test_gpus_count_where_the_ranks_are_on_them():
    def on_gpu(run, num_gpus):
        logs = [
            msgspec.structs.replace(
                log, head=msgspec.structs.replace(log.head, device=f"cuda:{i}", facts={"cores": 1, "num_gpus": num_gpus})
            )
            for i, log in enumerate(run.ranks)
        ]
        return msgspec.structs.replace(run, ranks=tuple(logs))

    assert answer("cores", survey(link=on_gpu(link_run(), 2))) == ("clear", "a-gpu-for-each-rank")
    assert answer("cores", survey(link=on_gpu(link_run(), 0))) == ("not_applicable", "gpus-not-recorded")
    shared = ask("cores", survey(link=on_gpu(link_run(), 1)))
    assert (shared.status, shared.reason) == ("found", "ranks-share-gpus") and shared.numbers == {"ranks": 2, "units": 1}
    assert shared.cause.startswith("2 ranks share 1 GPU: ")


def test_one_rank_and_a_program_that_did_not_say_are_not_applicable():
    assert answer("cores", survey(1)) == ("not_applicable", "one-rank-shares-with-none")
    assert answer("cores", OTHER_LAB) == ("not_applicable", "cores-not-recorded")


# Was it storage that was read?


def test_reads_past_the_cache_are_clear():
    assert answer("page-cache", survey()) == ("clear", "page-cache-kept-out")
    how = "dropped before each repeat (posix_fadvise)"
    dropped = ask("page-cache", survey(storage=storage_run(cache_bypass=how, cached_share=0.0)))
    assert (dropped.status, dropped.reason, dropped.numbers) == ("clear", "page-cache-kept-out", {"how": how})


def test_a_file_in_memory_or_in_the_cache_is_found():
    in_memory = ask("page-cache", survey(storage=storage_run(in_memory=True, file_system="tmpfs")))
    assert (in_memory.status, in_memory.reason) == ("found", "file-lay-in-memory")
    assert in_memory.numbers == {"file_system": "tmpfs"}
    cached = survey(storage=storage_run(cache_bypass="not bypassed"))
    assert answer("page-cache", cached) == ("found", "page-cache-in-the-way")


def test_pages_that_stayed_and_reads_as_fast_as_copies_are_inconclusive():
    stayed = storage_run(cache_bypass="dropped before each repeat (posix_fadvise)", cached_share=0.25)
    verdict = ask("page-cache", survey(storage=stayed))
    assert (verdict.status, verdict.reason) == ("inconclusive", "pages-stayed-in-cache")
    assert verdict.numbers == {"share": 0.25} and "kept 25% of the pages" in verdict.cause
    quick = survey(storage=storage_run(rate=15e9), compute=compute_run(copy=20e9))
    assert answer("page-cache", quick) == ("inconclusive", "as-fast-as-memory")


def test_a_lab_that_read_nothing_is_not_applicable():
    assert answer("page-cache", OTHER_LAB) == ("not_applicable", "no-storage-measured")
