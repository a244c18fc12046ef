"""Work for many at once, in processes of its own that can be ended.

In: a `Task`, a function with its arguments and processor time. Out: a `Job` with its value, shared by all who ask.
"""

from planner.jobs.executor import OfficeExecutor
from planner.jobs.office import OFFICE, Job, Office, Task, TooLong

__all__ = ["OFFICE", "Job", "Office", "OfficeExecutor", "Task", "TooLong"]
