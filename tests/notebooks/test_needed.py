"""What a comparison needs of a notebook stays, and what is only shown goes."""

from needed import sliced

CELLS = [
    "n, m = 2, 3  # parameters",
    "import labkit\nfrom labkit.view import lesson\n\nlab = labkit.lab('x')\nlesson.begin(lab, globals(), known=('n',))",
    "settings = {'n': n}\nsettings |= {'m': m}\nunused = 5",
    "first = lab.run('broken', **settings)\nlab.figure('loss', first)",
    "shown = lab.run('fixed', **settings)\nprint(lab.measures(shown))",
    "runs = []\nfor name in ('a', 'b'):\n    record = lab.run(name)\n    runs.append(record)\nlab.compare(*runs)",
    "speed = {}\nfor name in ('a', 'b'):\n    record = lab.run(name)\n    speed[name] = lab.measures(record)",
    "try:\n    lab.run('half')\nexcept ValueError as error:\n    print(error)\nelse:\n    raise AssertionError",
    "def mine(case):\n    raise NotImplementedError\n\n\nlab.check(mine)",
    "for record in runs:\n    assert lab.judge(record)",
    "print(lab.invariants(first))",
]


def test_what_is_compared_or_asserted_keeps_all_that_it_rests_on_and_nothing_else():
    kept = sliced(CELLS, {0, len(CELLS) - 1})
    assert kept == [
        CELLS[0],
        "import labkit\nfrom labkit.view import lesson\nlab = labkit.lab('x')\nlesson.begin(lab, globals(), known=('n',))",
        "settings = {'n': n}\nsettings |= {'m': m}",
        "first = lab.run('broken', **settings)",
        "",
        "runs = []\nfor name in ('a', 'b'):\n    record = lab.run(name)\n    runs.append(record)",
        "",
        CELLS[7],
        "",
        CELLS[9],
        CELLS[10],
    ]


def test_a_name_that_is_made_anew_needs_nothing_of_what_it_was():
    cells = ["a = run(1)", "a = run(2)", "b = run(3)\nb[0] = a", "assert b"]
    assert sliced(cells, set()) == ["", *cells[1:]]
