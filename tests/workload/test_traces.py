"""Recorded traffic in four formats; mistakes name their line."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.errors import InvalidInput
from planner.workload.traces import MAX_TOKENS, MOONCAKE_BLOCK_TOKENS, read_trace

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


MOONCAKE = '{"timestamp": 0, "input_length": 1500, "output_length": 5, "hash_ids": %s}'


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


def test_every_block_of_a_prompt_is_512_tokens():
    # Mooncake's traces (FAST 2025): hash_ids name blocks of 512 tokens; the last one of a prompt may be shorter.
    chain = '{"timestamp": %d, "input_length": %d, "output_length": 1, "hash_ids": %s}\n'
    read = read_trace(chain % (0, 1100, [1, 2, 3]) + chain % (1, 1100, [1, 2, 3]) + chain % (2, 700, [9, 2]))
    assert MOONCAKE_BLOCK_TOKENS == 512
    assert read.prefix_tokens.tolist() == [0, 1100, 0]  # never more than the prompt; a chain shares its beginning only
    assert read.prefix_group.tolist()[:2] == [0, 0]


@pytest.mark.parametrize("fmt", ["azure", "vidur", "burstgpt", "mooncake"])
def test_a_form_that_is_named_is_kept_to(fmt):
    with pytest.raises(InvalidInput, match="line 1"):
        read_trace("a,b,c\n1,2,3\n", fmt)
    with pytest.raises(InvalidInput) as caught:
        read_trace("a,b,c\n1,2,3\n", "pcap")
    assert caught.value.field == "fmt"


@given(
    st.lists(
        st.tuples(st.floats(0, 1e6), st.integers(0, MAX_TOKENS), st.integers(1, MAX_TOKENS)), min_size=1, max_size=20
    )
)
def test_what_was_recorded_is_replayed(rows):
    text = "arrived_at,num_prefill_tokens,num_decode_tokens\n" + "".join(f"{t!r},{p},{o}\n" for t, p, o in rows)
    read = read_trace(text)
    first = min(t for t, _, _ in rows)
    assert read.arrival_s.tolist() == [t - first for t in sorted(t for t, _, _ in rows)]
    assert sorted(read.prompt_tokens.tolist()) == sorted(max(1, p) for _, p, _ in rows)
    assert sorted(read.output_tokens.tolist()) == sorted(o for _, _, o in rows)
    assert np.array_equal(read.output_limit_tokens, read.output_tokens)


def test_names_of_columns_are_known_or_told():
    common = read_trace("Time;input_tokens;output_tokens\n10;100;5\n12;200;6\n")
    assert common.arrival_s.tolist() == [0, 2]
    assert common.prompt_tokens.tolist() == [100, 200]
    own = "when,question,answer\n0,7,3\n1,8,4\n"
    with pytest.raises(InvalidInput, match="line 1"):
        read_trace(own)
    told = read_trace(own, columns={"arrival": "when", "prompt": "question", "output": "answer"})
    assert told.output_tokens.tolist() == [3, 4]
    with pytest.raises(InvalidInput) as caught:
        read_trace(own, columns={"arrival": "when", "prompt": "questions", "output": "answer"})
    assert (caught.value.field, caught.value.value) == ("column of prompt", "questions")


def test_usage_records_of_the_openai_api():
    line = '{"id": "a", "created": %d, "usage": {"prompt_tokens": %d, "completion_tokens": %d}}\n'
    requests = read_trace(line % (1_700_000_000, 120, 30) + line % (1_700_000_005, 80, 10))
    assert requests.arrival_s.tolist() == [0, 5]
    assert requests.prompt_tokens.tolist() == [120, 80]
    assert requests.output_tokens.tolist() == [30, 10]


@pytest.mark.parametrize("per_second", [1, 1_000, 1_000_000, 1_000_000_000])
def test_an_epoch_counts_in_the_unit_that_its_size_tells(per_second):
    text = "timestamp,prompt_tokens,completion_tokens\n"
    text += "".join(f"{(1_700_000_000 + second) * per_second},10,5\n" for second in (0, 4))
    assert read_trace(text).arrival_s.tolist() == pytest.approx([0, 4])


def test_a_web_servers_log_takes_the_lengths_of_the_plan():
    row = '10.0.0.1 - - [10/Oct/2025:13:55:%02d +0000] "%s /v1/chat/completions HTTP/1.1" 200 2326\n'
    text = row % (36, "POST") + row % (37, "GET") + row % (40, "POST")
    with pytest.raises(InvalidInput, match="prompt tokens"):
        read_trace(text)
    lengths = read_trace("arrived_at,num_prefill_tokens,num_decode_tokens\n0,64,8\n")
    requests = read_trace(text, lengths=lengths)
    assert requests.arrival_s.tolist() == [0, 4]
    assert requests.prompt_tokens.tolist() == [64, 64]
    assert any("no prompt tokens" in note for note in requests.notes)


def test_logs_of_engines():
    answer = (
        "[2025-05-01 10:00:%02d] Finish: obj=..., out={'meta_info': {'prompt_tokens': 12, 'completion_tokens': 34}}\n"
    )
    served = read_trace("[2025-05-01 09:59:00] noise\n" + answer % 1 + answer % 4)
    assert (served.arrival_s.tolist(), served.output_tokens.tolist()) == ([0, 3], [34, 34])
    came = (
        "INFO 05-22 02:20:59 async_llm_engine.py:524] Received request a: prompt: 'secret', sampling_params: "
        "SamplingParams(n=1), prompt_token_ids: [1, 2, 3], lora_request: None.\n"
    )
    assert read_trace(came, lengths=served).prompt_tokens.tolist() == [3]


def test_the_quick_reading_and_the_careful_one_agree():
    from planner.workload.trace_formats import _careful_csv, _header, _quick_csv

    text = AZURE + "2023-11-16 18:15:51.5,7,8\n"
    names = {"arrival": "TIMESTAMP", "prompt": "ContextTokens", "output": "GeneratedTokens"}
    quick, careful = (read(text, _header(text), names) for read in (_quick_csv, _careful_csv))
    assert quick[-1] == careful[-1] == 0
    for one, other in zip(quick[:-1], careful[:-1], strict=True):
        assert one.tolist() == pytest.approx(other.tolist(), abs=1e-6)


def test_rows_that_say_no_tokens_are_left_out_and_counted():
    rows = "timestamp,prompt_tokens,completion_tokens\n0,10,5\n1,,5\n2,20,null\n\n3,30,6\n"
    requests = read_trace(rows)
    assert (requests.arrival_s.tolist(), requests.prompt_tokens.tolist()) == ([0, 3], [10, 30])
    assert "left out 2 rows without a time or tokens" in requests.notes


@pytest.mark.parametrize("times", [("2026-03-01 10:00:00", "2026-03-01 10:00:02"), (4, 6)])
def test_cells_beyond_the_header_are_passed_over(times):
    first, second = times
    requests = read_trace(f"timestamp,prompt_tokens,completion_tokens\n{first},10,5,7\n{second},11,5,7\n")
    assert requests.arrival_s.tolist() == [0, 2]
    assert (requests.prompt_tokens.tolist(), requests.output_tokens.tolist()) == ([10, 11], [5, 5])


def test_numbers_of_other_languages():
    german = read_trace("time;input_tokens;output_tokens\n10,5;100;5\n12,75;200;6\n")
    assert german.arrival_s.tolist() == [0, 2.25]
    english = read_trace('time,input_tokens,output_tokens\n10.5,"1,100",5\n12.75,"12,200",6\n')
    assert english.prompt_tokens.tolist() == [1100, 12200]
    logged = read_trace(
        'time,input_tokens,output_tokens\n"2026-03-01 10:00:00,250",1,5\n"2026-03-01 10:00:01,000",2,6\n'
    )
    assert logged.arrival_s.tolist() == pytest.approx([0, 0.75])


# the form of an entry in AWS's documentation of its load balancer
def test_a_load_balancers_log_counts_when_a_request_came():
    row = (
        "https 2026-07-02T22:23:%02d.186641Z app/my-loadbalancer/50dc6c495c0c9188 192.168.131.39:2817 10.0.0.1:80 "
        '0.086 0.048 0.037 200 200 0 57 "%s https://www.example.com:443/v1/chat HTTP/1.1" "curl/7.46.0" ECDHE '
        'TLSv1.2 arn:aws:target "Root=1-58337281" "www.example.com" "arn:aws:cert" 1 2026-07-02T22:22:%02d.364000Z '
        '"forward" "-" "-"\n'
    )
    lengths = read_trace("arrived_at,num_prefill_tokens,num_decode_tokens\n0,64,8\n")
    requests = read_trace(row % (10, "POST", 48) + row % (11, "GET", 49) + row % (12, "POST", 51), lengths=lengths)
    assert requests.arrival_s.tolist() == pytest.approx([0, 3])
