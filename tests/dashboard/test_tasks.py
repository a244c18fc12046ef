"""How many requests a page simulates: so many as it can answer with in seconds."""

from planner.dashboard.tasks import AIM_CPU_S, most_simulated, planned, request_cpu_s
from planner.scenario.scenario import Scenario

SHORT = Scenario(lengths="constant", prompt_mean_tokens=64.0, output_mean_tokens=16.0)


def test_longer_answers_leave_time_for_fewer_requests():
    long = SHORT.replace(output_mean_tokens=4000.0)
    assert request_cpu_s(long) > request_cpu_s(SHORT)
    assert most_simulated(long) < most_simulated(SHORT)
    # the longest run alone stays within the time that the page has
    assert most_simulated(long) * request_cpu_s(long) <= AIM_CPU_S


def test_a_budget_is_kept():
    scenario = SHORT.replace(num_requests=5000, users=50)
    assert planned(scenario, 400).scenario.num_requests == 400
    assert len(planned(scenario, 400).result.arrival_s) <= 400
    assert planned(SHORT.replace(num_requests=300), 4000).scenario.num_requests == 300
