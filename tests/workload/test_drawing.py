"""Drawn and recorded workloads."""

from __future__ import annotations

import dataclasses
import math
import time

import numpy as np
import pytest

from planner.errors import InvalidInput
from planner.inputs.traffic import Arrivals, Lengths, Traffic
from planner.workload.drawing import draw_conversations, draw_requests, offered_rate_rps, read_trace, with_rate

N = 40_000


def traffic(prompt=None, **arrivals) -> Traffic:
    return Traffic(
        arrivals=Arrivals(**arrivals), prompt_tokens=prompt or Lengths(mean=512), output_tokens=Lengths(mean=128)
    )


def test_lognormal_keeps_its_mean_and_spread():
    tokens = draw_requests(traffic(), N, 1).prompt_tokens
    # standard error of the mean: 512 / sqrt(N); of the spread: some times that for a heavy tail
    assert tokens.mean() == pytest.approx(512, abs=4 * 512 / math.sqrt(N))
    assert tokens.std() == pytest.approx(512, rel=0.1)


@pytest.mark.parametrize(
    ("kind", "spread", "std"), [("constant", 1.0, 0.0), ("uniform", 0.5, 512 * 0.5 / 3**0.5), ("exponential", 1.0, 512)]
)
def test_other_lengths(kind, spread, std):
    tokens = draw_requests(traffic(Lengths(kind=kind, mean=512, spread=spread)), N, 1).prompt_tokens
    assert tokens.mean() == pytest.approx(512, abs=4 * max(std, 1) / math.sqrt(N))
    assert tokens.std() == pytest.approx(std, rel=0.03, abs=0.1)


def test_quantiles_are_interpolated():
    tokens = draw_requests(traffic(Lengths(kind="quantiles", quantiles=(10, 20, 100))), N, 1).prompt_tokens
    assert np.quantile(tokens, [0, 0.25, 0.5, 0.75, 1]).tolist() == pytest.approx([10, 15, 20, 60, 100], abs=2)


def test_same_seed_same_requests_whatever_the_rate():
    slow, fast = draw_requests(traffic(rate_rps=1), 500, 7), draw_requests(traffic(rate_rps=4), 500, 7)
    np.testing.assert_array_equal(slow.prompt_tokens, fast.prompt_tokens)
    np.testing.assert_allclose(slow.arrival_s, 4 * fast.arrival_s)
    np.testing.assert_allclose(with_rate(slow, 4).arrival_s, fast.arrival_s)
    assert not np.array_equal(slow.prompt_tokens, draw_requests(traffic(), 500, 8).prompt_tokens)


@pytest.mark.parametrize("cv", [0.5, 1.0, 3.0])
def test_gamma_arrivals_have_their_variation(cv):
    gaps = np.diff(draw_requests(traffic(kind="bursty", cv=cv, rate_rps=2), N, 3).arrival_s)
    assert gaps.mean() == pytest.approx(0.5, rel=5 * cv / math.sqrt(N))
    assert gaps.std() / gaps.mean() == pytest.approx(cv, rel=0.06)


def test_on_off_puts_all_arrivals_into_the_bursts():
    requests = draw_requests(traffic(kind="on_off", rate_rps=2, on_fraction=0.25, period_s=60), N, 3)
    assert (requests.arrival_s % 60 <= 15 + 1e-9).all()
    assert N / requests.arrival_s[-1] == pytest.approx(2, rel=0.03)


@pytest.mark.parametrize("peak", [1.0, 2.0, 5.0])
def test_a_day_has_its_peak(peak):
    requests = draw_requests(traffic(kind="diurnal", rate_rps=N / 40_000, period_s=1000, peak_factor=peak), N, 3)
    phase = requests.arrival_s % 1000 / 1000
    at_noon = ((phase > 0.475) & (phase < 0.525)).mean() / 0.05
    assert at_noon == pytest.approx(peak, rel=0.1)


def test_weekends_are_quieter():
    requests = draw_requests(traffic(kind="diurnal", rate_rps=N / 70_000, period_s=1000, weekend_factor=0.3), N, 3)
    day = requests.arrival_s // 1000 % 7
    weekend, weekday = (day >= 5).sum() / 2, (day < 5).sum() / 5
    assert weekend / weekday == pytest.approx(0.3, rel=4 / weekend**0.5)


def test_the_engine_ends_answers_at_the_context():
    requests = draw_requests(traffic(Lengths(kind="constant", mean=900)), 1000, 1, max_model_len=1000)
    assert (requests.prompt_tokens + requests.output_tokens).max() == 1000


def test_shared_prefixes_belong_to_groups():
    shared = dataclasses.replace(traffic(), shared_prefix_tokens=100, num_prefix_groups=3)
    requests = draw_requests(shared, 1000, 1)
    assert set(requests.prefix_group.tolist()) == {0, 1, 2}
    assert (requests.prefix_tokens == np.minimum(100, requests.prompt_tokens)).all()


def test_conversations_repeat_what_was_said():
    requests = draw_conversations(traffic(rate_rps=1), 50, 3)
    for talk in range(50):
        turns = np.flatnonzero(requests.prefix_group == talk)
        said = (requests.prompt_tokens + requests.output_tokens)[turns]
        assert requests.prefix_tokens[turns].tolist() == [0, *said[:-1].tolist()]


def test_rates_cannot_be_set_where_there_is_none():
    once = draw_requests(traffic(kind="once"), 10, 1)
    assert offered_rate_rps(once) == math.inf
    with pytest.raises(InvalidInput, match="once"):
        with_rate(once, 2.0)
    with pytest.raises(InvalidInput, match="closed"):
        with_rate(draw_requests(traffic(kind="closed", users=3), 10, 1), 2.0)


MOONCAKE = '{"timestamp": 0, "input_length": 1500, "output_length": 5, "hash_ids": %s}'
AZURE = """TIMESTAMP,ContextTokens,GeneratedTokens
2023-11-16 18:15:46.6805900,374,44
2023-11-16 18:15:50.9951690,396,109
"""


def test_azure_csv():
    requests = read_trace(AZURE)
    assert requests.arrival_s.tolist() == pytest.approx([0, 4.314579], abs=1e-5)
    assert requests.prompt_tokens.tolist() == [374, 396]
    assert requests.output_tokens.tolist() == [44, 109]


def test_azure_csv_of_2024_has_a_time_zone():
    rows = "2024-05-10 00:00:00.009930+00:00,10,5\n2024-05-10 02:00:01.5+02:00,10,5\n2024-05-10 00:00:02Z,10,5\n"
    requests = read_trace("TIMESTAMP,ContextTokens,GeneratedTokens\n" + rows)
    assert requests.arrival_s.tolist() == pytest.approx([0, 1.5 - 0.00993, 2 - 0.00993], abs=1e-5)


def test_times_without_a_zone_have_no_missing_hour(monkeypatch):
    # On 26 March 2023 clocks in Berlin went from 2 to 3 o'clock; a recording in UTC did not.
    monkeypatch.setenv("TZ", "Europe/Berlin")
    time.tzset()
    try:
        rows = "2023-03-26 01:59:59,10,5\n2023-03-26 03:00:00,10,5\n"
        assert read_trace("TIMESTAMP,ContextTokens,GeneratedTokens\n" + rows).arrival_s.tolist() == [0, 3601]
    finally:
        monkeypatch.undo()
        time.tzset()


def test_a_year_of_rare_requests_is_a_trace():
    rows = "".join(f"{86_400 * day},10,5\n" for day in range(366))
    assert read_trace("arrived_at,num_prefill_tokens,num_decode_tokens\n" + rows).arrival_s[-1] == 365 * 86_400


def test_vidur_csv_unsorted_from_a_file(tmp_path):
    path = tmp_path / "trace.csv"
    path.write_text("arrived_at,num_prefill_tokens,num_decode_tokens\n5,10,1\n2,20,2\n")
    requests = read_trace(path)
    assert requests.arrival_s.tolist() == [0, 3]
    assert requests.prompt_tokens.tolist() == [20, 10]
    assert "line 3" in requests.notes[0]
    assert len(read_trace(str(path))) == 2


def test_mooncake_jsonl_finds_shared_prefixes():
    requests = read_trace(
        '{"timestamp": 0, "input_length": 1500, "output_length": 5, "hash_ids": [1, 2, 3]}\n'
        '{"timestamp": 3000, "input_length": 1400, "output_length": 7, "hash_ids": [1, 2, 9]}\n'
    )
    assert requests.arrival_s.tolist() == [0, 3]
    assert requests.prefix_tokens.tolist() == [0, 1024]
    assert requests.prefix_group[0] == requests.prefix_group[1]


def test_burstgpt_leaves_out_failures():
    requests = read_trace(
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,a,9,0,9,API\n6,a,9,3,12,API"
    )
    assert len(requests) == 1
    assert "without output" in requests.notes[0]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("TIMESTAMP,ContextTokens\n1,2", "line 1"),
        (AZURE + "2023-11-16 18:15:51,-3,4", "line 4, ContextTokens"),
        (AZURE + "2023-11-16 18:15:51,3,many", "line 4, GeneratedTokens"),
        (AZURE + "yesterday,3,4", "line 4"),
        (AZURE + "2023-11-16 18:15:51", "line 4"),
        ('{"timestamp": 1, "input_length": 2}', "line 1"),
        ('{"timestamp": 1', "line 1"),
        (AZURE + "2023-11-16 18:15:51,1e30,4", "line 4, ContextTokens = '1e30'.* from 0 to 10,000,000"),
        (AZURE + "2023-11-16 18:15:51,3,2.5", "line 4, GeneratedTokens = '2.5'"),
        (AZURE + "inf,3,4", "line 4, TIMESTAMP = 'inf'"),
        (AZURE + "1e308,3,4", "line 4, TIMESTAMP = '1e308'"),
        (AZURE + "2023-13-16 18:15:51,3,4", "line 4, TIMESTAMP = '2023-13-16 18:15:51'"),
        (AZURE + "2024-11-17 18:15:51,3,4", "line 4, TIMESTAMP = '367 days between lines 2 and 4'.* within 366 days"),
        (AZURE + '2023-11-16 18:15:51,3,"' + "9" * 200_000, "line 4.*comma-separated"),
        (MOONCAKE % "5", "line 1, hash_ids = 5 .*list of whole numbers"),
        (MOONCAKE % "[[1]]", r"line 1, hash_ids = \[\[1\]\]"),
        (MOONCAKE % ("9" * 5000), "line 1"),
        (MOONCAKE % ("[" * 100_000), "line 1"),
        ("a\0b.csv", "a file that exists"),
        ("", "at least one request"),
        ("no-such-file.csv", "a file that exists"),
    ],
)
def test_mistakes_name_their_line(text, message):
    with pytest.raises(InvalidInput, match=message):
        read_trace(text)
