"""The search: real alternatives to a plan, the cheapest first, and what single changes do.

In: a Scenario with its restrictions. Out: a `Search` whose rows equal their own plans.

space      GPU × split × weight format × KV cache, then engine settings
bounds     least replicas of a candidate, from cheap to dear
recommend  the search itself, in rounds of small tasks for any executor
state      what it knows of its candidates; kept: what earlier searches found, for other prices
outcome    rows; summary: the outcome in a sentence
vendors    what vendors recommend among the candidates, and why another is cheaper
changes    what single changes of a plan do
cluster    a Dask cluster as executor
"""

from planner.answer.search.changes import Change, change_steps
from planner.answer.search.cluster import dask_executor
from planner.answer.search.outcome import EVIDENCE, Candidate, Search, candidate_of, cheapest_as_sure
from planner.answer.search.recommend import recommend, search_steps
from planner.answer.search.space import evidence_of
from planner.answer.search.summary import changed_settings, format_in_words, search_text, split_in_words, tally

__all__ = [
    "EVIDENCE",
    "Candidate",
    "Change",
    "Search",
    "candidate_of",
    "change_steps",
    "changed_settings",
    "cheapest_as_sure",
    "dask_executor",
    "evidence_of",
    "format_in_words",
    "recommend",
    "search_steps",
    "search_text",
    "split_in_words",
    "tally",
]
