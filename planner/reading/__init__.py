"""What engines and benchmarks print, read into a plan.

In: a start-up log, a benchmark's output or JSON, metrics of a running engine, recorded traffic, another planner's
result. Out: a `Reading`: every figure with its line, what was not understood, and the Scenario that the file describes;
and a plan calibrated to measured runs.

reading      one file, recognised by its content; together: several files of one deployment
startup      start-up logs, by settings and figures (`log_lines.csv`); printed: their memory in place of the estimate
benchmarks   tables and JSON of the engines' clients; line_reports: a figure a line; column_tables: a run a row;
             saved_reports: JSON by paths; offline: benchmarks without a server; metrics_text: `/metrics`
peers        results of other planners
overlay      predicted beside actual
calibrating  a plan fitted to measured runs; advising: the load test to run next; held_out: what calibrating is worth
"""

from planner.reading.advising import Advice, AdvisedTest, advice_text, advise
from planner.reading.calibrating import Calibration, calibrate, uncalibrated
from planner.reading.calibration_file import calibration_dict, calibration_text, factor_sd_of, with_calibration
from planner.reading.figures import Understood
from planner.reading.overlay import Compared, Overlay, overlay, overlay_text
from planner.reading.printed import prints_memory, with_printed, without_printed
from planner.reading.reading import NotUnderstood, Reading, columns_of, read
from planner.reading.runs import Run
from planner.reading.text import MAX_BYTES
from planner.reading.together import OwnFile, Together, read_together
from planner.reading.wording import reading_dict, reading_text, together_dict, together_text, value_text

__all__ = [
    "MAX_BYTES",
    "Advice",
    "AdvisedTest",
    "Calibration",
    "Compared",
    "NotUnderstood",
    "Overlay",
    "OwnFile",
    "Reading",
    "Run",
    "Together",
    "Understood",
    "advice_text",
    "advise",
    "calibrate",
    "calibration_dict",
    "calibration_text",
    "columns_of",
    "factor_sd_of",
    "overlay",
    "overlay_text",
    "prints_memory",
    "read",
    "read_together",
    "reading_dict",
    "reading_text",
    "together_dict",
    "together_text",
    "uncalibrated",
    "value_text",
    "with_calibration",
    "with_printed",
    "without_printed",
]
