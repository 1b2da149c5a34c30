"""More of the questions about the source."""

from __future__ import annotations

from ..explained import Explained

SUBJECT, PLACE = "The source", 8

EXPLAINED = {
    "unread-settings": Explained(
        "An option is parsed, printed with the others and kept in the log, and nothing gives it to the optimizer. Each "
        "run of a search over it is the same run with another seed.",
        """\
- optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr)
+ optimizer = torch.optim.AdamW(model.parameters(), lr=args.lr, weight_decay=args.weight_decay)
""",
        "labkit reads the script's own modules: options of argparse, click, typer and fire, fields of dataclasses, and "
        "arguments of functions. It looks for the names of a learning rate, weight decay, momentum, clipping, warm-up, "
        "accumulation, label smoothing or an average's decay.",
        "Where options are handed on all together, as by vars(args) or asdict(config), labkit cannot tell and says nothing. "
        "The same holds for functions that are given to others, and for classes with bases. A module of settings that "
        "holds nothing else may be another script's too: there the answer is inconclusive.",
    ),
    "unreached-calls": Explained(
        "A return that was moved up, or a continue that lost its condition, leaves what follows it in the block without "
        "effect. Python says nothing of it.",
        """\
  loss.backward()
  optimizer.step()
- return loss.item()
  scheduler.step()
+ return loss.item()
""",
        "labkit reads the script's own modules for calls of backward, zero_grad, clipping, set_epoch, all_reduce, and "
        "steps of optimizers, schedulers and averages, behind a return, a break or a continue of the same block.",
        "Conditions that are never true are not looked at. Code that was left behind on purpose looks the same.",
    ),
}
