"""What a comparison needs of a notebook stays, and what is only shown goes."""

from needed import sliced

CELLS = [
    "n, m = 2, 3  # parameters",
    "import labkit\nfrom labkit.view import lesson\n\nlab = labkit.lab('x')\nlesson.begin(lab, globals(), known=('n',))",
    "settings = {'n': n}\nsettings |= {'m': m}\nlab",
    "first = lab.run('broken', **settings)\nlab.figure('loss', first)",
    "shown = lab.run('fixed', **settings)\nseen = lab.measures(shown)\nassert seen",
    "runs = []\nfor name in ('a', 'b'):\n    record = lab.run(name)\n    runs.append(record)\nlab.compare(*runs)",
    "speed = {}\nfor name in ('a', 'b'):\n    record = lab.run(name)\n    speed[name] = lab.measures(record)",
    "try:\n    lab.run('half')\nexcept ValueError as error:\n    print(error)\nelse:\n    raise AssertionError",
    "lab.check(first)\nfolder = first.folder\nfolder.unlink()",
    "measured = lab.measures(first)\nfor record in runs:\n    found = lab.judge(record)\n    assert found and measured",
    "riddle = lab.mystery(n)\ndisplay(riddle)\nriddle.figure('loss')",
    "print(lab.invariants(first, *runs))",
]


def test_what_is_compared_keeps_the_runs_that_it_rests_on_and_what_is_asserted_of_them():
    kept = sliced(CELLS, {0, len(CELLS) - 1})
    assert kept == [
        CELLS[0],
        "import labkit\nfrom labkit.view import lesson\nlab = labkit.lab('x')\nlesson.begin(lab, globals(), known=('n',))",
        "settings = {'n': n}\nsettings |= {'m': m}",
        "first = lab.run('broken', **settings)",
        "",
        "runs = []\nfor name in ('a', 'b'):\n    record = lab.run(name)\n    runs.append(record)",
        "speed = {}",
        "",
        "folder = first.folder\nfolder.unlink()",
        CELLS[9],
        "",
        CELLS[11],
    ]


def test_a_name_that_is_made_anew_needs_nothing_of_what_it_was():
    cells = ["a = lab.run(1)", "a = lab.run(2)", "b = lab.run(3)\nb[0] = a", "b"]
    assert sliced(cells, {3}) == ["", *cells[1:]]
