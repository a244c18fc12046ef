"""Tables of the pages against the plan that they are made from."""

import math

import pytest

from planner.dashboard import plan_tables
from planner.step_time.step_table import StepWork
from planner.units import format_duration, format_usd
from tests.answer.cases import planned

REFUSED = {"model": "meta-llama/Llama-3.3-70B-Instruct"}


def cells(rows):
    return [[cell.replace("\u00a0", " ") for cell in row.values()] for row in rows]


def test_cells_are_text_and_short_ones_do_not_break():
    (row,) = plan_tables.table(("a", "b"), [("1 GPU", "[x](y) *z* " + "long " * 5)])
    assert row["a"] == "1\u00a0GPU"
    assert "\\[x\\]" in row["b"] and "\\*z\\*" in row["b"]
    with pytest.raises(ValueError, match="zip"):
        plan_tables.table(("a",), [("1", "2")])


def test_percentiles_rise_along_each_row():
    done = planned()
    rows = cells(plan_tables.latency_table(done))
    assert len(rows) == 4
    for row, found in zip(rows, (done.metrics.ttft_s, done.metrics.tpot_s), strict=False):
        assert row[1:] == [format_duration(x) for x in (found.mean, found.p50, found.p90, found.p95, found.p99)]


def test_policies_and_bill_are_those_of_the_plan():
    done = planned()
    assert [row[0] for row in cells(plan_tables.policy_table(done))] == [item.title for item in done.policies]
    bill = {row[0]: row[1] for row in cells(plan_tables.cost_table(done))}
    assert bill["USD per month"] == format_usd(done.cost.usd_per_month)
    assert bill["USD per GPU-hour"] == format_usd(done.cost.usd_per_gpu_hour)


def test_decode_steps_by_batch():
    done = planned()
    rows = cells(plan_tables.step_table(done, 1000))
    assert len(rows) == 9  # 1, 2, 4 … 256
    work = StepWork(num_decodes=1, kv_tokens=1000, window_kv_tokens=1000, num_logit_rows=1)
    assert rows[0][1] == format_duration(done.step_time.step_s(work))


@pytest.mark.parametrize(
    "changes",
    [{}, {"demand": "daily"}, {"demand": "rate"}, {"num_replicas": 2}, {"spare_replicas": 1}, {"arrivals": "closed"}],
)
def test_derivations_come_to_the_plans_figures(changes):
    done = planned(**changes)
    found = {row[0]: row for row in cells(plan_tables.derivations(done))}
    assert found["GPUs"][3] == str(done.num_gpus)
    product = math.prod(int(part) for part in found["GPUs"][2].split(" × "))
    assert product == done.num_gpus
    assert found["Replicas"][3] == str(done.num_replicas)
    gpus, price, hours = (float(part.replace(",", "")) for part in found["USD per month"][2].split(" × "))
    assert gpus * price * hours == pytest.approx(done.cost.usd_per_month, rel=0.01)
    assert len(plan_tables.derivations(planned(**REFUSED))) == 1
