"""The hours of a drawn day, as the table and the link have them."""

from planner.dashboard.day_editor import PERCENT, edited, percentages
from planner.scenario.scenario import Scenario


def test_the_table_shows_the_scenarios_day():
    hours = ".".join(str(4 * hour) for hour in range(24))
    drawn = Scenario(day_shape="drawn", day_hours=hours)
    assert percentages(drawn) == tuple(4 * hour for hour in range(24))
    assert max(percentages(Scenario(day_shape="office"))) == 100


def test_an_edit_changes_its_hours_alone():
    shares = (50,) * 24
    text = edited(shares, {3: {PERCENT: 80}, 23: {PERCENT: 0}, 5: {PERCENT: None}})
    assert [int(part) for part in text.split(".")] == [50] * 3 + [80] + [50] * 19 + [0]
    assert Scenario(day_shape="drawn", day_hours=text).hourly_rates_rps[23] == 0.0
