"""What the question about modes says."""

from __future__ import annotations

from ..catalogue import Reason

REASONS = {
    # train-mode
    "modes-not-watched": Reason(
        "nobody looked at the mode that models are called in", "run the script under `labkit doctor`, which looks at it"
    ),
    "no-module-minds-its-mode": Reason("no model that is trained has dropout or BatchNorm"),
    "modes-as-they-should-be": Reason("models are trained in training mode, and evaluated in evaluation mode"),
    "evaluated-in-training-mode": Reason(
        "a model is evaluated in training mode, over {batches:plural batch/batches} that are never trained on: dropout "
        "makes its answers random, and BatchNorm uses the statistics of the batch and learns those of the evaluation data",
        "call model.eval() before the loop that evaluates, and model.train() after it",
    ),
    "stays-in-evaluation-mode": Reason(
        "the last {share:.0%} of the updates are made in evaluation mode, and those before in training mode: dropout is "
        "off, and BatchNorm no longer follows the data",
        "call model.train() after each evaluation, at the beginning of each epoch",
    ),
    "perhaps-evaluated-in-training-mode": Reason(
        "a model is called in training mode over {batches:plural batch/batches} that are not trained on in this pass",
        "nothing, if it is to be so (statistics of BatchNorm made anew, dropout as a sample); else call model.eval() before",
    ),
}
