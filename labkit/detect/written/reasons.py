"""What the questions about the source say."""

from __future__ import annotations

from ..catalogue import Reason

REASONS = {
    "source-not-read": Reason(
        "the source of the script was not read", "run the script under `labkit doctor`, and let it come to its end"
    ),
    # unread-settings
    "settings-are-read": Reason("each option and argument that sets the training is read somewhere in the source"),
    "option-never-read": Reason(
        "the script parses {name} and reads it nowhere: whatever it is given, the training is the same",
        "give it to what it is meant for, or take the option out",
    ),
    "field-never-read": Reason(
        "{of} has the setting {name}, and nothing reads it: whatever it is given, the training is the same",
        "give it to what it is meant for, or take it out of {of}; if another script reads it, nothing is wrong",
    ),
    "argument-never-read": Reason(
        "{function}() takes {name} and reads it nowhere: whatever it is given there, the training is the same",
        "use it in the function, or take the argument out",
    ),
    # unreached-calls
    "calls-are-reached": Reason("no call of the training stands behind the end of its block"),
    "call-never-reached": Reason(
        "{call} is never called: the {ends_with} at {after} ends its block before",
        "move the call in front of it, or take it out",
    ),
}
