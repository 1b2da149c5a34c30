"""What is asked of hosts and links: read, refused, and dealt out to ranks."""

import pytest

from labkit.errors import UsageError
from labkit.ranks.holder import BURST_S, MIN_BURST_BYTES, address, burst_bytes, shaping
from labkit.ranks.links import MAX_HOSTS, Links, host_of, links, local_rank_of, rate_of
from labkit.record.schema import Network, said_rate


@pytest.mark.parametrize(
    ("words", "bits"),
    [
        ("400mbit", 400e6),
        ("2.5gbit", 2.5e9),
        (" 1 Gbit/s ", 1e9),
        ("1000kbit", 1e6),
        ("1000000bit", 1e6),
        (25_000_000, 25e6),
        (1e9, 1e9),
    ],
)
def test_a_rate_is_read_in_bits(words, bits):
    assert rate_of(words) == bits


@pytest.mark.parametrize(
    "words", ["fast", "400", "400mb", "100mbps", "-1mbit", "400 megabytes", "mbit", "", None, True, [1], "1e9bit"]
)
def test_what_is_no_rate_is_refused_with_an_example(words):
    with pytest.raises(UsageError, match="as in 400mbit"):
        rate_of(words)


@pytest.mark.parametrize("words", ["10kbit", "999kbit", "401gbit", 5, float("nan"), float("inf")])
def test_a_rate_out_of_range_is_refused_with_the_range(words):
    with pytest.raises(UsageError, match="from 1 Mbit/s to 400 Gbit/s"):
        rate_of(words)


def test_no_hosts_and_one_host_are_the_machine_itself():
    assert links(4, None, None) is None
    assert links(4, 1, None) is None
    assert links(4, 1, "", 0.0) is None


def test_hosts_and_a_link_are_taken_together():
    assert links(4, 2, "400mbit", 5) == Links(hosts=2, rate_bits_per_s=400e6, latency_s=0.005)
    assert links(2, 2, None) == Links(hosts=2)
    assert links(2, 2, "1gbit", None, True).emulate


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        ((4, 0, None), "from 1 to 64; given 0"),
        ((4, 2.0, None), "given 2.0"),
        ((4, True, None), "given True"),
        ((200, MAX_HOSTS + 1, None), "given 65"),
        ((2, 3, None), "3 hosts for 2 ranks: one would be empty"),
        ((1, 2, None), "2 hosts for 1 rank: "),
        ((4, None, "400mbit"), "link was given, but a link joins two hosts or more"),
        ((4, 1, None, 5.0), "latency was given"),
        ((4, None, None, None, True), "emulate_link was given"),
        ((4, 2, None, -1.0), "latency must be from 0 to 10000 milliseconds; given -1.0"),
        ((4, 2, None, float("nan")), "given nan"),
        ((4, 2, None, "5"), "given '5'"),
        ((4, 2, None, None, True), "neither was given"),
    ],
)
def test_what_cannot_be_is_refused_with_what_to_do(asked, said):
    with pytest.raises(UsageError) as refused:
        links(*asked)
    assert said in str(refused.value)


def test_ranks_sit_in_blocks_no_host_is_empty_and_none_has_two_more_than_another():
    for ranks in range(1, 20):
        for hosts in range(1, ranks + 1):
            seats = [host_of(rank, ranks, hosts) for rank in range(ranks)]
            assert seats == sorted(seats)
            sizes = [seats.count(host) for host in range(hosts)]
            assert min(sizes) >= 1 and max(sizes) - min(sizes) <= 1
            for host in range(hosts):
                own = [local_rank_of(r, ranks, hosts) for r in range(ranks) if seats[r] == host]
                assert own == list(range(sizes[host]))


def test_every_host_has_an_address_of_its_own():
    assert len({address(host) for host in range(MAX_HOSTS)}) == MAX_HOSTS
    assert address(0) == "10.77.0.1"


def test_a_link_is_limited_delayed_both_or_neither():
    assert shaping("eth0", 0, 0) == []
    assert shaping("eth0", 400_000_000, 0) == ["qdisc add dev eth0 root tbf rate 400000000bit burst 100000b latency 200ms"]
    assert shaping("eth0", 0, 0.005) == ["qdisc add dev eth0 root netem delay 5000us limit 100000"]
    outer, inner = shaping("eth0", 1_000_000, 0.005)
    assert "root handle 1: netem delay 5000us" in outer and "parent 1: handle 2: tbf rate 1000000bit" in inner


def test_the_burst_grows_with_the_rate_and_holds_a_few_packets_at_least():
    assert burst_bytes(1_000_000) == MIN_BURST_BYTES > 4 * 1500
    assert burst_bytes(10_000_000_000) == 10_000_000_000 / 8 * BURST_S


def test_a_network_says_what_it_is_and_where_its_numbers_come_from():
    real = Network(hosts=2, way="user", rate_bits_per_s=4e8, achieved_bits_per_s=3.98e8)
    assert real.label() == "2 hosts, 400 Mbit/s links (398 Mbit/s measured)"
    assert real.source == "measured" and "as an ordinary user" in real.made
    made_up = Network(hosts=3, way="emulated", rate_bits_per_s=1e9, latency_s=0.002, reason="asked for")
    assert made_up.label() == "3 hosts, 1 Gbit/s links with 2 ms (simulated)"
    assert made_up.source == "simulated" and "emulated" in made_up.made and "asked for" in made_up.made
    assert Network(hosts=2, way="root", achieved_bits_per_s=3e10).label() == "2 hosts, unlimited links (30 Gbit/s measured)"


@pytest.mark.parametrize(
    ("bits", "said"), [(4e8, "400 Mbit/s"), (2.5e9, "2.5 Gbit/s"), (999, "999 bit/s"), (1e3, "1 kbit/s")]
)
def test_rates_are_said_as_a_person_writes_them(bits, said):
    assert said_rate(bits) == said
