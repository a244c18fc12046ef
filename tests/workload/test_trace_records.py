"""Records of requests in JSON, as tracing tools write them."""

import json

import pytest

from planner.errors import InvalidInput
from planner.workload import columns_in, read_trace
from planner.workload.trace_records import first_record, flat_keys, records_in, value_at

#: fields of an observation in Langfuse's API; the first is a span, which has no tokens
LANGFUSE = [
    {"id": "a", "type": "SPAN", "startTime": "2026-03-01T10:00:00.000Z", "usageDetails": {}},
    {"id": "b", "type": "GENERATION", "startTime": "2026-03-01T10:00:01Z", "usageDetails": {"input": 100, "output": 7}},
    {"id": "c", "type": "GENERATION", "startTime": "2026-03-01T10:00:04Z", "usageDetails": {"input": 50, "output": 9}},
]


def span(start_s, **attributes):
    """A span as OTLP writes it in JSON: 64-bit integers as text, attributes as pairs."""
    pairs = [{"key": name.replace("__", "."), "value": {"intValue": str(value)}} for name, value in attributes.items()]
    return {"name": "chat", "startTimeUnixNano": str((1_700_000_000 + start_s) * 10**9), "attributes": pairs}


def otlp(*spans):
    return {"resourceSpans": [{"resource": {}, "scopeSpans": [{"scope": {}, "spans": list(spans)}]}]}


def call(start_s, prompt, output):
    return span(start_s, gen_ai__usage__input_tokens=prompt, gen_ai__usage__output_tokens=output)


@pytest.mark.parametrize("whole", [LANGFUSE, {"data": LANGFUSE, "meta": {"page": 1}}], ids=["array", "object"])
@pytest.mark.parametrize("indent", [None, 2])
def test_an_export_of_langfuse(whole, indent):
    requests = read_trace(json.dumps(whole, indent=indent) + "\n")
    assert (requests.arrival_s.tolist(), requests.prompt_tokens.tolist()) == ([0, 3], [100, 50])
    assert requests.output_tokens.tolist() == [7, 9]
    assert any("left out 1 row without" in note for note in requests.notes)


def test_a_table_of_langfuse_has_objects_in_its_cells():
    rows = [[row["startTime"], row["type"], json.dumps(row["usageDetails"]).replace('"', '""')] for row in LANGFUSE[1:]]
    text = "startTime,type,usageDetails\n" + "".join(f'{time},{kind},"{usage}"\n' for time, kind, usage in rows)
    requests = read_trace(text)
    assert (requests.arrival_s.tolist(), requests.output_tokens.tolist()) == ([0, 3], [7, 9])
    assert columns_in(text).known["prompt"] == "usageDetails.input"


def test_spans_of_opentelemetry_a_line_each_or_together():
    agent = span(4, gen_ai__usage__input_tokens=900, gen_ai__usage__output_tokens=90)
    agent["attributes"].append({"key": "gen_ai.operation.name", "value": {"stringValue": "invoke_agent"}})
    other = span(5, http__status=200)
    spans = [call(10, 100, 7), agent, other, call(12, 60, 8)]
    for text in (json.dumps(otlp(*spans), indent=1), "\n".join(json.dumps(otlp(item)) for item in spans)):
        requests = read_trace(text + "\n")
        assert requests.arrival_s.tolist() == [0, 2]
        assert requests.prompt_tokens.tolist() == [100, 60]


def test_spans_with_plain_attributes_and_columns_of_their_own_names():
    line = '{"start_time": "2026-03-01T10:00:%02dZ", "attributes": {"llm.token_count.prompt": 5, '
    line += '"llm.token_count.completion": 3}}\n'
    assert read_trace(line % 1 + line % 3).prompt_tokens.tolist() == [5, 5]
    assert flat_keys({"a": {"b": {"c": {"d": 1}}}}) == ["a", "a.b", "a.b.c"]
    assert value_at({"a": {"b.c": 1}}, "a.b.c") == 1


# AIPerf's profile_export.jsonl: nanoseconds, a value and a unit each
def test_the_records_of_aiperf():
    line = (
        '{"metadata": {"request_start_ns": %d}, "metrics": {"input_sequence_length": {"value": 550, "unit": "tokens"},'
    )
    line += ' "output_sequence_length": {"value": 48, "unit": "tokens"}}}\n'
    requests = read_trace(line % 1_700_000_000_000_000_000 + line % 1_700_000_002_500_000_000)
    assert (requests.arrival_s.tolist(), requests.output_tokens.tolist()) == ([0, 2.5], [48, 48])


def test_what_is_no_record_is_named():
    with pytest.raises(InvalidInput, match="line 2"):
        list(records_in('{"a": 1}\nnothing\n'))
    with pytest.raises(InvalidInput, match="no record with a time"):
        read_trace('{"start_time": 1, "prompt_tokens": null, "completion_tokens": 3}\n')
    assert first_record('[{"a": {"b": 1}}, {"a": {"b"') == {"a": {"b": 1}}
    assert first_record("{cut") == {}
