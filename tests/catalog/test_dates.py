"""When models appeared."""

import datetime

from planner.catalog.dates import created_on
from planner.catalog.models import model_names
from planner.tables import read_table


def test_days_are_days_of_catalog_models():
    for row in read_table("catalog/model_dates.csv"):
        assert row["model"] in model_names()
        datetime.date.fromisoformat(row["created"])


def test_unknown_models_have_none():
    assert created_on("Qwen/Qwen3-8B").startswith("2025-")
    assert created_on("nobody/nothing") == ""
