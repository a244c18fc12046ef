"""A reading as text and as JSON."""

import json
import math

from planner.reading import read
from planner.reading.wording import reading_dict, reading_text, value_text
from planner.scenario import from_query

LOG = "vllm serve Qwen/Qwen3-8B --max-model-len 8192 --kv-transfer-config Mooncake\nGPU KV cache size: 123,456 tokens"


def test_every_figure_has_its_line_and_what_is_not_used_its_reason():
    text = reading_text(read(LOG))
    assert "line      2  kv_tokens = 123,456 tokens" in text
    assert "--kv-transfer-config" in text
    assert "the plan has no input for it" in text


def test_json_opens_the_same_plan_as_the_link():
    reading = read(LOG)
    body = json.loads(json.dumps(reading_dict(reading)))
    assert {"kind", "understood", "not_understood", "scenario"} <= set(body)
    assert from_query(body["link"]).scenario == reading.scenario
    assert {"name": "kv_tokens", "value": 123456.0, "unit": "tokens", "line": 2} in body["understood"]


def test_a_start_up_log_also_opens_as_the_plan_with_its_own_memory():
    told = reading_text(read("vllm serve Qwen/Qwen3-8B --max-model-len 8192\nGPU KV cache size: 123,456 tokens\n"))
    link = told.rsplit("With the memory that it printed: ", 1)[1]
    assert from_query(link).scenario.printed_memory.kv_tokens == 123_456


def test_a_benchmark_that_sends_as_fast_as_it_can_has_an_unlimited_rate():
    assert (value_text(math.inf), value_text(123_456.0), value_text("auto")) == ("unlimited", "123,456", "auto")
