"""What is read in a script's source."""

from __future__ import annotations

import ast

import pytest

from labkit.watch.outside import written
from labkit.watch.outside.settings_read import unread
from labkit.watch.outside.unreached import unreached

CUTS = """\
mine = rows[rank::world_size]
mine = rows[dist.get_rank() :: dist.get_world_size()]
mine = rows[rank * n : (rank + 1) * n]
mine = data.shard(num_shards=world, index=rank)
mine = Subset(data, range(rank, len(data), world_size))
mine = rows.chunk(world_size)[rank]
mine = [row for at, row in enumerate(rows) if at % world_size == rank]
"""

NO_CUTS = """\
generator.manual_seed(seed + rank)
half = rows[::2]
first = rows[:n]
name = names[rank]
per_rank = range(0, batch, world_size)
mine = model.shard(2)
every = step % 10 == 0
path = f"{folder}/{rank}.pt"
"""


@pytest.fixture
def script(tmp_path, monkeypatch):
    def of(text):
        file = tmp_path / f"script_{abs(hash(text))}.py"
        file.write_text(text)
        monkeypatch.setattr(written, "script_files", lambda: [str(file)])
        return str(file)

    return of


@pytest.mark.parametrize("line", CUTS.splitlines())
def test_rows_that_are_cut_by_rank(script, line):
    file = script(f"import torch\n{line}\n")
    assert written.cut_by_rank() == (file, 2)


@pytest.mark.parametrize("line", NO_CUTS.splitlines())
def test_what_is_no_cut_by_rank(script, line):
    script(line)
    assert written.cut_by_rank() == ("", 0)


def test_loops_around_a_line(script):
    file = script("for epoch in range(3):\n    for batch in loader:\n        train(batch)\nfor batch in loader:\n    pass\n")
    assert written.loops_around(file, 3) == [(2, 3), (1, 3)]
    assert written.loops_around(file, 2) == [(1, 3)]  # the header of a loop is run once
    assert written.loops_around(file, 4) == []
    assert written.loops_around(script("for epoch in range(1):\n    train()\nfor fold in [0]:\n    train()\n"), 2) == []


def test_names_that_a_script_calls_and_assigns(script):
    script("sampler.set_epoch(epoch)\nself.epoch += 1\nprint(other.seed)\n")
    assert written.calls("set_epoch") and not written.calls("set_seed")
    assert written.assigns("epoch") and not written.assigns("seed")


def test_a_file_that_is_no_python_is_read_as_nothing(script):
    script("def (:\n")
    assert not written.calls("set_epoch")


# settings that nothing reads


def names_unread(*texts):
    trees = {f"{at}.py": ast.parse(text) for at, text in enumerate(texts)}
    return [(one.kind, one.name, one.alone) for one in unread(trees)]


OPTION = "parser.add_argument('--weight-decay', type=float, default=0.1)\nargs = parser.parse_args()\n"


@pytest.mark.parametrize(
    "use",
    [
        "AdamW(parameters, weight_decay=args.weight_decay)",
        "AdamW(parameters, **vars(args))",
        "settings = args.__dict__",
        "create_optimizer(args, model)",
        "trainer = Trainer(model, args=args)",
        "decay = getattr(args, 'weight_decay')",
    ],
)
def test_an_option_that_is_read_or_handed_on_accuses_nobody(use):
    assert names_unread(OPTION + use) == []


@pytest.mark.parametrize("use", ["", "print(args)", "def run(args):\n    return args.lr\nrun(args)"])
def test_an_option_that_nothing_reads(use):
    assert names_unread(OPTION + use) == [("option", "weight_decay", True)]
    assert names_unread(OPTION + use, "decay = args.weight_decay") == []  # another module does


@pytest.mark.parametrize(
    "option",
    [
        "parser.add_argument('--local_rank', type=int)",
        "parser.add_argument('--clip', help='deprecated')",
        "parser.add_argument('--clip', help=argparse.SUPPRESS)",
        "parser.add_argument('--wd', dest='decay')\nprint(args.decay)",
    ],
)
def test_options_that_may_be_unread(option):
    assert names_unread(option) == []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def clip_all(model, max_norm):\n    clip(model, 1.0)\nclip_all(net, 0.5)", [("argument", "max_norm", True)]),
        ("def fit(net, lr):\n    go(net)\nfit(net, args.lr)", [("argument", "lr", True)]),
        ("def fit(net, lr):\n    go(net)\nfit(net, args.lr)\nSGD(p, args.lr)", [("argument", "lr", False)]),
        ("def fit(net, lr=0.1):\n    go(net)\nfit(net)", [("argument", "lr", False)]),
        ("def fit(net, lr):\n    go(net, lr)\nfit(net, 0.1)", []),
        ("def hook(net, lr):\n    go(net)\nregister(hook)", []),  # somebody else says which arguments it has
        ("def fit(net, lr):\n    raise NotImplementedError\nfit(net, 0.1)", []),
        ("class A(Base):\n    def fit(self, lr):\n        go()\nA().fit(0.1)", []),
        ("class A:\n    def fit(self, lr):\n        go()\nA().fit(0.1)", [("argument", "lr", True)]),
    ],
)
def test_arguments_that_nothing_reads(text, expected):
    assert names_unread(text) == expected


# calls that nothing comes to


def calls_unreached(text):
    return [(one.line, one.call, one.after, one.ends_with) for one in unreached({"a.py": ast.parse(text)})]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("def f():\n    return 1\n    scheduler.step()", [(3, "scheduler.step()", 2, "return")]),
        (
            "for b in l:\n    continue\n    if b:\n        optimizer.zero_grad()",
            [(4, "optimizer.zero_grad()", 2, "continue")],
        ),
        ("while True:\n    break\n    dist.all_reduce(g)", [(3, "dist.all_reduce()", 2, "break")]),
        ("def f():\n    if done:\n        return\n    scheduler.step()", []),
        ("def f():\n    return 1\n    print('left over')", []),
        ("def f():\n    raise NotImplementedError\n    loss.backward()", []),
        ("def f():\n    return 1\n    env.step()", []),
        ("def f():\n    return g\n    def g():\n        loss.backward()", []),
    ],
)
def test_calls_behind_the_end_of_their_block(text, expected):
    assert calls_unreached(text) == expected
