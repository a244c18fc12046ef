"""Sweeps: errors of level, shape and decisions on made-up runs, by hand."""

import pandas as pd
import pytest

from planner.accuracy import sweeps


def runs(*lines):
    """Runs of (deployment, concurrency, ttft, tpot), each deployment a number of GPUs."""
    usual = {"source": "x(inferencex-db)", "model": "m", "isl": 1024.0, "osl": 101.0, "engine": "vLLM", "notes": "",
             "arrival": "concurrency", "gpu": "H100", "engine_version": "0.9", "date": "2026-01", "weight_dtype": "fp8",
             "kv_dtype": None, "pp": 1, "ep": 1}  # fmt: skip
    return pd.DataFrame(
        [
            usual | {"id": str(number), "tp": tp, "n_gpus": tp, "concurrency": users, "ttft_ms_mean": ttft,
                     "tpot_ms_mean": tpot}
            for number, (tp, users, ttft, tpot) in enumerate(lines)
        ]
    )  # fmt: skip


def predicted(frame, ttft, tpot):
    """Rows of the Accuracy page: predictions of both latencies, with factors on the measured ones."""
    parts = [
        pd.DataFrame({"id": frame["id"], "quantity": quantity, "predicted": frame[quantity] * factors})
        for quantity, factors in (("ttft_ms_mean", ttft), ("tpot_ms_mean", tpot))
    ]
    return pd.concat(parts).assign(left_out=lambda rows: rows["predicted"], peer=float("nan"))


CURVE = runs((1, 4, 100.0, 10.0), (1, 16, 200.0, 15.0), (1, 64, 400.0, 30.0))


def test_level_and_shape():
    # TPOT 10 % too high everywhere: the level is off, the shape is not. TTFT right at 4 users, then 20 and 50 % low.
    table = sweeps.sweeps(predicted(CURVE, [1.0, 0.8, 0.5], 1.1), CURVE)
    tpot, ttft = (sweeps.curve_errors(table, "predicted", name) for name in ("tpot", "ttft"))
    assert tpot["level"].tolist() == pytest.approx([0.1] * 3)
    assert tpot["shape"].tolist()[1:] == pytest.approx([0.0, 0.0])
    assert ttft["shape"].tolist()[1:] == pytest.approx([0.2, 0.5])
    assert ttft["shape"].isna().tolist() == [True, False, False]  # every curve starts at itself


def test_a_first_run_that_is_off_tilts_the_whole_curve():
    # TPOT twice as high at 4 users alone: relative to it the other runs lie at half of what was measured.
    table = sweeps.sweeps(predicted(CURVE, 1.0, [2.0, 1.0, 1.0]), CURVE)
    assert sweeps.curve_errors(table, "predicted", "tpot")["shape"].tolist()[1:] == pytest.approx([0.5, 0.5])


def test_measures_stand_beside_what_peers_state():
    found = sweeps.peer_measures(sweeps.sweeps(predicted(CURVE, 1.0, 1.1), CURVE)).set_index("tool")
    ours = found.loc["Headroom, source left out"]
    assert (ours["points"], ours["coverage_pct"]) == (3, 100)
    assert ours["tpot_mape_pct"] == pytest.approx(10)
    assert found.loc["AISimulate 0.12, as it states", "tpot_mape_pct"] == 28.4
    assert found.loc["AIConfigurator 0.12, run here", "points"] == 0


# Two deployments, three concurrencies each. Output 101 tokens: E2E = TTFT + 100 × TPOT.
# One GPU: 4 users 1.1 s → 367 tokens/s; 16 users 2.0 s → 808; 64 users 4.0 s → 1616. Two GPUs: half as much for each.
CHOICE = runs((1, 4, 100.0, 10.0), (1, 16, 500.0, 15.0), (1, 64, 1000.0, 30.0),
              (2, 4, 100.0, 10.0), (2, 16, 500.0, 15.0), (2, 64, 1000.0, 30.0))  # fmt: skip


def test_a_right_tool_loses_nothing():
    made = sweeps.decisions(sweeps.sweeps(predicted(CHOICE, 1.0, 1.0), CHOICE), "predicted")
    assert made["tokens_per_s"].tolist() == [15, 30, 60, 100]
    assert made["regret"].tolist() == [0.0] * 4
    assert not made["miss"].any()


def test_a_tool_that_favours_the_wrong_deployment_loses_what_the_right_one_gives():
    # It takes two GPUs for three times as fast as they are: half of the throughput per GPU is lost.
    made = sweeps.decisions(
        sweeps.sweeps(predicted(CHOICE, [1] * 3 + [1 / 3] * 3, [1] * 3 + [1 / 3] * 3), CHOICE), "predicted"
    )
    slow = made[made["tokens_per_s"] == 30].iloc[0]
    assert (slow["regret"], slow["miss"]) == (pytest.approx(0.5), False)
    fast = made[made["tokens_per_s"] == 100].iloc[0]  # 64 users at 10 ms by its word, 30 ms measured
    assert fast["miss"]


def test_figures_count_the_loss_of_hits_alone():
    table = sweeps.sweeps(predicted(CHOICE, 1.0, 10.0), CHOICE)  # too slow to meet any speed but 15 tokens/s and below
    line = sweeps.decision_figures(table).set_index("tool").loc["Headroom, as it ships"]
    assert line["decisions"] == 4
    assert line["miss_pct"] == 100  # nothing meets 15 tokens/s by its word, so each decision is missed


def test_the_projects_own_measurements_form_sweeps():
    frame = sweeps.measured_runs()
    assert len(frame) > 3000
    assert frame["url"].notna().all()
