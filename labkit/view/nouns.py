"""What each noun looks like in a notebook: loaded when the first of them is to be shown."""

from __future__ import annotations

from ..classroom.mystery import Mystery
from ..detect.verdict import Verdict, Verdicts
from ..doctor.diagnosis import Diagnosis
from ..labs.spec import LabSpec
from ..record.baseline import Baseline
from ..record.schema import Record
from ..record.table import Table
from ..results import CheckResult, Comparison, Diagnosed, Diff, Hint, LabsHere, Shown
from ..showing import look
from .cards import check_card, comparison_card, diff_card, lab_card, record_card, verdict_card, verdicts_card
from .diagnosis_page import diagnosis_card
from .exercise_cards import code_card, diagnosed_card, hint_card, mystery_card
from .survey import baseline_card, labs_here_card
from .tables import table_card

look.register(Baseline, baseline_card)
look.register(CheckResult, check_card)
look.register(Comparison, comparison_card)
look.register(Diagnosis, diagnosis_card)
look.register(Diagnosed, diagnosed_card)
look.register(Diff, diff_card)
look.register(Hint, hint_card)
look.register(LabSpec, lab_card)
look.register(LabsHere, labs_here_card)
look.register(Mystery, mystery_card)
look.register(Record, record_card)
look.register(Shown, code_card)
look.register(Table, table_card)
look.register(Verdict, verdict_card)
look.register(Verdicts, verdicts_card)
