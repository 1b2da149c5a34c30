"""An option is parsed and read nowhere, and the schedule's step stands behind a return. No run shows either."""

import sys

CASE = {
    "shows": "read in the source",
    "found": ["unread-settings/option-never-read", "unreached-calls/call-never-reached"],
    "may": ["learning-rate-schedule/scheduler-never-stepped"],
    "ranks": 1,
}

if sys.argv.pop(1) == "sick":
    from read_in_the_source.sick import main
else:
    from read_in_the_source.repaired import main

main()
