"""The survey's detectors, four ways each: found, clear, inconclusive, not applicable."""

import msgspec

from labkit.detect import detector
from labkit.record.schema import Network

from ..builders import record_of, run_of
from ..surveys import SIZES, compute_run, link_run, storage_run, survey

OTHER_LAB = record_of(run_of([[[[1, 2]], [[3, 4]]]]))


def ask(name, record):
    return detector(name)(record)


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
    assert verdict.status == "clear" and verdict.evidence["residual_max"].value < 0.01


def test_a_size_off_the_line_whose_repeats_agree_is_found():
    verdict = ask("link-fit", survey(link=link_run(distort={2**20: 4.0})))
    assert verdict.status == "found" and "1,048,576 bytes" in verdict.cause and "curve" in verdict.fix
    assert ask("link-fit", survey(link=link_run(distort={2**20: 0.3}))).status == "found"


def test_the_same_with_repeats_that_scatter_is_inconclusive():
    verdict = ask("link-fit", survey(link=link_run(distort={2**20: 0.3}, jitter=(0.2, 1.0, 1.1))))
    assert verdict.status == "inconclusive" and "noise" in verdict.cause and "measure again" in verdict.fix


def test_too_few_sizes_and_a_bandwidth_that_did_not_show_are_inconclusive():
    assert "needs 3 or more" in ask("link-fit", survey(link=link_run(sizes=SIZES[:2]))).cause
    flat = {size: 1e-3 / (1e-3 + 1e-9 * size) / (1 + i) for i, size in enumerate(SIZES)}
    verdict = ask("link-fit", survey(link=link_run(distort=flat)))
    assert verdict.status == "inconclusive" and "large enough" in verdict.cause


def test_one_rank_has_no_link_and_another_lab_measured_none():
    assert "one rank" in ask("link-fit", survey(1)).cause and "--ranks 2" in ask("link-fit", survey(1)).fix
    assert ask("link-fit", survey(1)).status == ask("link-fit", OTHER_LAB).status == "not_applicable"


# Does each rank have a core of its own?


def test_ranks_that_outnumber_the_cores_are_found():
    verdict = ask("cores", survey(4, link=link_run(4, cores=2)))
    assert verdict.status == "found" and "4 ranks share 2 cores" in verdict.cause and "at most 2 ranks" in verdict.fix


def test_ranks_with_a_core_each_are_clear():
    assert ask("cores", survey(4, link=link_run(4, cores=4))).status == "clear"


def test_threads_that_outnumber_the_cores_are_inconclusive():
    crowded = with_threads(link_run(2, cores=4), threads=4)
    verdict = ask("cores", survey(link=crowded))
    assert (
        verdict.status == "inconclusive" and "8 threads on 4 cores" in verdict.cause and "at most 2 threads" in verdict.fix
    )


def test_hosts_are_counted_apart():
    spread = with_threads(link_run(4, cores=2), 1, hosts=["a", "a", "b", "b"])
    assert ask("cores", survey(4, link=spread)).status == "clear"
    lopsided = with_threads(link_run(4, cores=2), 1, hosts=["a", "a", "a", "b"])
    assert "3 ranks share 2 cores" in ask("cores", survey(4, link=lopsided)).cause


def test_hosts_that_were_made_on_one_machine_share_its_cores():
    spread = survey(4, link=with_threads(link_run(4, cores=2), 1, hosts=["host-0", "host-0", "host-1", "host-1"]))
    network = Network(hosts=2, way="root")
    here = msgspec.structs.replace(spread, provenance=msgspec.structs.replace(spread.provenance, network=network))
    verdict = ask("cores", here)
    assert verdict.status == "found" and "4 ranks share 2 cores" in verdict.cause


def test_gpus_count_where_the_ranks_are_on_them():
    def on_gpu(run, num_gpus):
        logs = [
            msgspec.structs.replace(
                log, head=msgspec.structs.replace(log.head, device=f"cuda:{i}", facts={"cores": 1, "num_gpus": num_gpus})
            )
            for i, log in enumerate(run.ranks)
        ]
        return msgspec.structs.replace(run, ranks=tuple(logs))

    assert ask("cores", survey(link=on_gpu(link_run(), 2))).status == "clear"
    assert "2 ranks share 1 GPU:" in ask("cores", survey(link=on_gpu(link_run(), 1))).cause


def test_one_rank_and_a_program_that_did_not_say_are_not_applicable():
    assert ask("cores", survey(1)).status == ask("cores", OTHER_LAB).status == "not_applicable"
    assert "probe.declare(cores=" in ask("cores", OTHER_LAB).fix


# Was it storage that was read?


def test_reads_past_the_cache_are_clear():
    assert ask("page-cache", survey()).status == "clear"
    dropped = storage_run(cache_bypass="dropped before each repeat (posix_fadvise)", cached_share=0.0)
    assert ask("page-cache", survey(storage=dropped)).status == "clear"


def test_a_file_in_memory_or_in_the_cache_is_found():
    in_memory = ask("page-cache", survey(storage=storage_run(in_memory=True, file_system="tmpfs")))
    assert in_memory.status == "found" and "tmpfs, which is memory" in in_memory.cause
    cached = ask("page-cache", survey(storage=storage_run(cache_bypass="not bypassed")))
    assert cached.status == "found" and "page cache" in cached.cause and "--record" in cached.fix


def test_pages_that_stayed_and_reads_as_fast_as_copies_are_inconclusive():
    stayed = storage_run(cache_bypass="dropped before each repeat (posix_fadvise)", cached_share=0.25)
    assert "kept 25%" in ask("page-cache", survey(storage=stayed)).cause
    quick = survey(storage=storage_run(rate=15e9), compute=compute_run(copy=20e9))
    assert ask("page-cache", quick).status == ask("page-cache", survey(storage=stayed)).status == "inconclusive"


def test_a_lab_that_read_nothing_is_not_applicable():
    assert ask("page-cache", OTHER_LAB).status == "not_applicable"
