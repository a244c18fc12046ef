"""What a calibration is worth on runs that it does not see."""

import math
import random

import pytest

from planner.accuracy.serving import serving_columns
from planner.reading.held_out import deployments, held_out, main, most_telling, summary
from tests.reading.test_calibrating import load, shown

ROW = {
    "source": "a",
    "engine": "vLLM",
    "engine_version": "0.9.0",
    "model": "meta-llama/Llama-3.1-8B-Instruct",
    "gpu": "H100-SXM-80GB",
    "n_gpus": "1",
    "tp": "1",
    "isl": "256",
    "osl": "64",
    "arrival": "concurrency",
    "n_requests": "20",
    "output_tok_s_total": "100",
    "tpot_ms_mean": "9",
}


def test_runs_are_grouped_by_source_and_deployment():
    rows = [
        *({**ROW, "concurrency": users} for users in ("1", "2")),
        {**ROW, "concurrency": "1", "source": "b"},
        {**ROW, "concurrency": "1", "gpu": "L40S-48GB"},
        {**ROW, "concurrency": "1", "model": "unheard of"},
        {**ROW, "concurrency": "4", "notes": "SUSPECT: warm-up"},
        {**ROW, "concurrency": "2"},  # published a second time
    ]
    assert sorted(map(len, deployments(rows))) == [1, 1, 2]
    assert deployments(rows)[0][0][1] == {"tpot_ms_mean": 9.0, "output_tok_s_total": 100.0}


def test_other_runs_of_a_slow_machine_are_predicted_better():
    runs = [(load(users), shown(load(users))) for users in (1, 8, 24, 48)]
    rows = [row for row in held_out(runs, 3, random.Random(1)) if row["figure"] == "tpot"]
    assert len(rows) == 1
    assert abs(rows[0]["after"]) < 0.5 * abs(rows[0]["before"])


def test_runs_are_chosen_by_what_they_send_alone():
    runs = [(load(users), {}) for users in (1, 1, 1, 48)]
    first, second = most_telling(runs, 2)[:2]
    # two loads tell more than one load twice
    assert {first[0].concurrent_users, second[0].concurrent_users} == {1, 48}


def test_the_summary_by_hand():
    rows = [{"figure": "tpot", "before": math.log(1.2), "after": math.log(1.1), "sd": 0.2}] * 2
    rows += [{"figure": "tpot", "before": math.log(2.0), "after": math.log(1.5), "sd": 0.2}]
    line = summary(rows)[0]
    assert (line["figure"], line["runs"]) == ("tpot", 3)
    assert line["before_median_pct"] == pytest.approx(20.0)
    assert line["after_median_pct"] == pytest.approx(10.0)
    assert line["inside_50_pct"] == pytest.approx(100 * 2 / 3)  # ln 1.1 is half a standard deviation, ln 1.5 two


def test_the_command_prints_a_line_for_each_figure(tmp_path, capsys):
    figures = {users: serving_columns(load(users)) for users in (1, 2, 3, 4)}
    columns = [*ROW, "concurrency"]
    lines = [",".join(columns)]
    for users in (1, 2, 3, 4):
        row = ROW | {"concurrency": str(users), "tpot_ms_mean": str(figures[users]["tpot_ms_mean"])}
        lines.append(",".join(row[name] for name in columns))
    file = tmp_path / "serving.csv"
    file.write_text("\n".join(lines))
    main([str(file), "--runs", "1"])
    out = capsys.readouterr().out
    assert out.startswith("1 deployment, each calibrated to 1 of its runs")
    assert "tpot: 3 runs" in out
