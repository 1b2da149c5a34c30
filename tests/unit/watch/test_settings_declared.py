"""Settings of commands and dataclasses that nothing in a script reads."""

from __future__ import annotations

import ast

import pytest

from labkit.watch.outside.settings_declared import declared_and_unread

CLICK = """\
@click.command()
@click.option("--lr", default=0.1)
@click.option("--weight-decay", "decay", default=0.0)
@click.option("--warmup-steps", default=0{more})
def main(lr, decay, warmup_steps):
    {body}
"""

TYPER = """\
app = typer.Typer()

@app.command()
def main(lr: float = 0.1, momentum: Annotated[float, typer.Option(help="{help}")] = 0.9):
    {body}
"""

FIELDS = """\
@dataclass{frozen}
class Settings{bases}:
    lr: float = 0.1
    warmup_steps: int = {value}
    batch: int = 8

def train(settings: Settings):
    run(settings.lr, settings.batch)
"""


def unread(*texts):
    trees = {f"{at}.py": ast.parse(text) for at, text in enumerate(texts)}
    return [(one.kind, one.name, one.line, one.alone) for one in declared_and_unread(trees)]


def click(body, more=""):
    return CLICK.format(body=body, more=more)


def typer(body, help="of SGD"):
    return TYPER.format(body=body, help=help)


def fields(use, *, frozen="", bases="", value="0"):
    return FIELDS.format(frozen=frozen, bases=bases, value=value) + use


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (click("run(lr, decay)"), [("option", "warmup_steps", 4, True)]),
        (click("run(lr, decay, warmup_steps)"), []),
        (click("run(decay, **locals())"), []),
        (click("run(lr, decay)", more=', help="deprecated"'), []),
        (click("run(lr, decay)", more=", hidden=True"), []),
        ("@retry\n" + click("run(lr, decay)"), []),  # what another decorator does with arguments is not known
        (typer("run(lr)"), [("option", "momentum", 4, True)]),
        (typer("run(lr, momentum)"), []),
        (typer("run(lr)", help="has no effect any more"), []),
        ("def main(lr=0.1):\n    run()\ntyper.run(main)", [("option", "lr", 1, True)]),
        ("def main(lr=0.1):\n    run()\nfire.Fire(main)", [("option", "lr", 1, True)]),
        ("def main(lr=0.1):\n    run()\nuvicorn.run(main)", []),
        ("def main(lr=0.1):\n    run()\nrun(main)", []),
    ],
)
def test_parameters_of_commands(text, expected):
    assert unread(text) == expected


SICK = [("field", "warmup_steps", 4, True)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (fields("train(Settings())"), SICK),
        (fields("train(tyro.cli(Settings))"), SICK),
        (fields("settings, = HfArgumentParser(Settings).parse_args_into_dataclasses()\ntrain(settings)"), SICK),
        (
            fields(
                "settings, training = HfArgumentParser((Settings, TrainingArguments)).parse_args_into_dataclasses()\n"
                "Trainer(args=training)\ntrain(settings)"
            ),
            SICK,
        ),
        (fields("train(Settings())", frozen="(frozen=True)"), SICK),
        (fields("print(settings)\ntrain(settings := Settings())"), SICK),
        (fields("train(Settings())\nschedule(settings.warmup_steps)"), []),
        (fields("train(Settings())\nfor name in ('lr', 'warmup_steps'): use(getattr(settings, name))"), []),
        (fields("train(Settings())\nwandb.init(config=asdict(settings))"), []),
        (fields("mine = Settings()\ntrain(mine)\nlightning.fit(mine)"), []),
        (fields("self.mine: Settings = made()\ntrain(self.mine)\nlightning.fit(Settings())"), []),
        (fields("train(Settings())\nprint(settings.__dict__)"), []),
        (fields("train(Settings())", bases="(TrainingArguments)"), []),  # the library reads it
        (fields("train(Settings())", value="field(default=0, metadata={'help': 'unused'})"), []),
        (fields(""), []),  # nobody makes one
    ],
)
def test_fields_of_dataclasses(text, expected):
    assert unread(text) == expected


def test_a_module_of_settings_may_be_shared_with_other_scripts():
    settings = "@dataclass\nclass Settings:\n    lr: float = 0.1\n    warmup_steps: int = 0\n"
    assert unread(settings, "run(Settings().lr)") == [("field", "warmup_steps", 4, False)]


def test_a_class_that_takes_them_hands_nothing_on_unless_its_bases_do():
    own = fields("class Job:\n    def __init__(self, settings):\n        {}\nJob(Settings())")
    assert unread(own.format("self.lr = settings.lr")) == SICK
    assert unread(own.format("super().__init__(settings)")) == []
