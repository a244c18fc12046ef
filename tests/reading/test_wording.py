"""A reading as text and as JSON."""

import json

from planner.reading import read
from planner.reading.wording import reading_dict, reading_text
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
