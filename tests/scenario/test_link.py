import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.errors import InvalidInput
from planner.scenario.fields import ROUTERS
from planner.scenario.link import from_json, from_params, from_query, to_json, to_params, to_query
from planner.scenario.scenario import Scenario

scenarios = st.builds(
    Scenario,
    title=st.text(alphabet=st.characters(min_codepoint=32, blacklist_categories=("Cs",)), max_size=40),
    model=st.sampled_from(["meta-llama/Llama-3.1-8B-Instruct", "custom"]),
    weight_dtype=st.sampled_from(["auto", "fp8"]),
    num_replicas=st.none() | st.integers(1, 100),
    gpu_memory_utilization=st.none() | st.floats(0.1, 1.0),
    users=st.integers(1, 10**8),
    rate_rps=st.floats(1e-6, 1e6),
    demand=st.sampled_from(["users", "rate", "daily"]),
    enable_prefix_caching=st.booleans(),
    burst_cv=st.floats(0.05, 20),
    max_model_len=st.integers(16, 100_000),
    chunked_prefill=st.sampled_from(["auto", "on", "off"]),
    async_scheduling=st.sampled_from(["auto", "off"]),
    state_dtype=st.sampled_from(["auto", "bfloat16"]),
    media=st.sampled_from(["auto", "images", "none"]),
    max_state_slots=st.none() | st.integers(1, 1000),
    mamba_full_memory_ratio=st.none() | st.floats(0.01, 100),
    block_size=st.none() | st.sampled_from([8, 16, 32]),
    kv_offload_gib=st.floats(0, 1000),
    patience_s=st.none() | st.floats(0.01, 100),
    num_lora_adapters=st.integers(0, 1000),
    max_loras=st.none() | st.integers(1, 64),
    output_limit_tokens=st.none() | st.integers(1, 10_000),
    router=st.sampled_from(ROUTERS),
    seed=st.integers(0, 2**31 - 1),
)


@given(scenarios)
@settings(max_examples=80)
def test_links_and_json_lose_nothing(scenario):
    for decoded in (from_query(to_query(scenario)), from_json(to_json(scenario))):
        assert decoded.scenario == scenario
        assert decoded.problems == ()


def test_only_differences_are_in_the_link():
    assert to_params(Scenario()) == {"v": "2"}
    assert to_params(Scenario(users=7, gpu="L40S")) == {"v": "2", "g": "L40S", "u": "7"}


def test_a_whole_address_is_a_link_too():
    decoded = from_query("https://plan.example.com/memory?v=1&u=7&g=L40S")
    assert (decoded.scenario.users, decoded.scenario.gpu, decoded.problems) == (7, "L40S", ())


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ("u=abc", "users"),
        ("u=1.5", "users"),
        ("u=-3", "users"),
        ("u=nan", "users"),
        ("rps=1e999", "rate_rps"),
        ("g=<script>", "gpu"),
        ("m=nobody/nothing", "model"),
        ("zzz=1", "zzz"),
        ("v=banana", "banana"),
        ("v=99", "99"),
        ("pc=maybe", "enable_prefix_caching"),
        ("ctx=999999999", "max_model_len"),
        ("sp=9000", "shared_prefix_tokens"),
        ("sp=10000000", "shared_prefix_tokens"),
        ("n=" + "x" * 5000, "title"),
    ],
)
def test_what_cannot_be_used_is_named_and_the_rest_is_loaded(query, named):
    decoded = from_query(query + "&tp=2")
    assert decoded.scenario == Scenario(tensor_parallel_size=2)
    assert len(decoded.problems) == 1
    assert named in decoded.problems[0]


def test_a_truncated_link_loads_what_is_whole():
    whole = to_query(Scenario(users=1234, gpu="L40S", title="Budget 2027"))
    for cut in range(len(whole)):
        decoded = from_query(whole[:cut])
        assert isinstance(decoded.scenario, Scenario)


def test_an_endless_link_is_cut_and_said_so():
    decoded = from_query("u=7&" + "&".join(f"k{i}=1" for i in range(100_000)))
    assert decoded.scenario.users == 7
    assert "characters" in decoded.problems[0]


@given(st.dictionaries(st.text(max_size=8), st.text(max_size=30), max_size=8))
@settings(max_examples=100)
def test_no_link_ever_raises(params):
    assert isinstance(from_params(params).scenario, Scenario)


@given(st.text(max_size=200))
@settings(max_examples=100)
def test_no_text_ever_raises(text):
    assert isinstance(from_query(text).scenario, Scenario)


@pytest.mark.parametrize("text", ["", "[]", "7", "{", "null", '"x"', "[" * 100_000])
def test_json_that_is_no_scenario_is_refused(text):
    with pytest.raises(InvalidInput, match="JSON object"):
        from_json(text)


def test_json_of_a_wrong_type_is_named():
    decoded = from_json(json.dumps({"users": "many", "gpu": 7, "seed": None, "tensor_parallel_size": 2}))
    assert decoded.scenario == Scenario(tensor_parallel_size=2)
    assert {problem.split(" = ")[0] for problem in decoded.problems} == {"Users (users)", "GPU (gpu)", "Seed (seed)"}


def test_the_json_of_a_whole_plan_is_the_scenario_that_it_answers():
    scenario = Scenario(users=50, tensor_parallel_size=2)
    body = json.loads(to_json(scenario))
    decoded = from_json("\ufeff" + json.dumps({"scenario": body, "headline": "…", "link": to_query(scenario)}))
    assert (decoded.scenario, decoded.problems) == (scenario, ())


@pytest.mark.parametrize(
    ("read", "text", "errors", "unknown"),
    [
        (from_query, "u=abc&tp=1", ["users"], []),
        (from_query, "m=foo&u=5", ["model"], []),
        (from_query, "v=banana", ["version"], []),
        (from_query, "foo=1", [], ["foo"]),
        (from_query, "v=99&foo=1", [], []),  # a newer version may know it
        (from_query, "m=openai-community/gpt2", [], []),  # the default context gives way to the model
        (from_query, "m=openai-community/gpt2&ctx=8192", ["max_model_len"], []),
        (from_query, "u=7&" + "&".join(f"k{i}=1" for i in range(100_000)), ["SCENARIO"], None),
        (from_json, '{"users": -5}', ["users"], []),
        (from_json, '{"model": "foo/bar", "gpu": 7}', ["gpu", "model"], []),
        (from_json, '{"rate_rps": 1' + "0" * 400 + "}", ["rate_rps"], []),
        (from_json, '{"usres": 5}', [], ["usres"]),
        (from_json, '{"version": 99, "usres": 5}', [], []),
        (from_json, '{"scenario": 5}', [], ["scenario"]),
    ],
)
def test_what_was_refused_can_be_told_from_what_gave_way(read, text, errors, unknown):
    decoded = read(text)
    assert sorted(error.field for error in decoded.errors) == errors
    assert unknown is None or [error.value for error in decoded.unknown] == unknown


@pytest.mark.parametrize("address", ["http://localhost:8501/", "https://plan.example.com/memory#top", "HTTP://x/"])
def test_an_address_without_a_query_is_the_default_plan(address):
    assert from_query(address) == from_query("")
    assert from_query(address).problems == ()


def test_the_plan_beside_this_one_and_the_vocabulary_are_told_apart():
    # Both were named `vs`: a link of the page that compares holds a whole query there, an older link a number.
    other = to_params(Scenario(users=9))
    beside = from_params({"u": "7", "vs": "&".join(f"{name}={text}" for name, text in other.items())})
    assert (beside.scenario, beside.problems) == (Scenario(users=7), ())
    assert from_query("v=1&m=custom&vs=50000").scenario == Scenario(model="custom", vocab_size=50_000)
    assert "vs" not in to_params(Scenario(model="custom", vocab_size=50_000))


def test_a_model_with_a_shorter_context_keeps_its_place():
    # GPT-2 was trained with 1,024 positions; the default context is longer.
    decoded = from_query("m=openai-community/gpt2")
    assert decoded.scenario.model == "openai-community/gpt2"
    assert decoded.scenario.max_model_len == 1024
    assert "max_model_len" in decoded.problems[0]


@pytest.mark.parametrize(
    ("more", "problems"), [("&sp=600", 1), ("&sp=2000", 2), ("&lpt=512", 1), ("&cp=off&mbt=1024", 1)]
)
def test_a_shorter_context_of_a_model_goes_with_what_it_bounds(more, problems):
    decoded = from_query("m=openai-community/gpt2" + more)
    assert (decoded.scenario.model, decoded.scenario.max_model_len) == ("openai-community/gpt2", 1024)
    assert len(decoded.problems) == problems
    assert decoded.scenario.shared_prefix_tokens == (600 if more == "&sp=600" else 0)


def test_a_prompt_of_the_starting_point_gives_way_to_the_context_of_the_link():
    decoded = from_query("ctx=512&u=9", Scenario(shared_prefix_tokens=1000))
    assert decoded.scenario == Scenario(max_model_len=512, users=9)
    assert "Shared system prompt (shared_prefix_tokens) = 1,000" in decoded.problems[0]


def test_a_link_of_the_first_format_opens_the_same_plan():
    # Written before the advanced engine settings existed; every name and default must keep its meaning.
    link = (
        "v=1&n=Budget+2027&m=Qwen%2FQwen3-32B&w=fp8&kv=fp8&ctx=16384&g=H200+SXM&tp=2&r=none&gmu=0.85&seqs=128&mbt=4096"
        "&pc=0&spec=3&acc=0.6&d=daily&rpd=500000&pk=3&a=bursty&cv=3&l=lognormal&p=900&ps=1.5&o=300&os=0.5&sp=200"
        "&ttft=2&tpot=0.04&q=0.99&sr=1&usd=2.5&ai=0.1&ao=0.4&hpm=700&nr=800&s=11"
    )
    decoded = from_query(link)
    assert decoded.problems == ()
    assert decoded.scenario == Scenario(
        title="Budget 2027",
        model="Qwen/Qwen3-32B",
        weight_dtype="fp8",
        kv_cache_dtype="fp8",
        max_model_len=16384,
        gpu="H200 SXM",
        tensor_parallel_size=2,
        gpu_memory_utilization=0.85,
        max_num_seqs=128,
        max_num_batched_tokens=4096,
        enable_prefix_caching=False,
        num_speculative_tokens=3,
        speculative_acceptance=0.6,
        demand="daily",
        requests_per_day=500_000.0,
        peak_factor=3.0,
        arrivals="bursty",
        burst_cv=3.0,
        lengths="lognormal",
        prompt_mean_tokens=900.0,
        prompt_spread=1.5,
        output_mean_tokens=300.0,
        output_spread=0.5,
        shared_prefix_tokens=200,
        ttft_target_s=2.0,
        tpot_target_s=0.04,
        target_quantile=0.99,
        spare_replicas=1,
        usd_per_gpu_hour=2.5,
        api_usd_per_mtok_input=0.1,
        api_usd_per_mtok_output=0.4,
        hours_per_month=700.0,
        num_requests=800,
        seed=11,
    )
    engine, traffic = decoded.scenario.engine_settings, decoded.scenario.traffic
    assert (engine.block_size, engine.max_loras, engine.kv_offload_gib, engine.patience_s) == (16, 0, 0.0, None)
    assert traffic.output_limit_tokens is None


@pytest.mark.parametrize(
    ("query", "replicas"),
    [
        ("v=1&a=closed&cu=50", 1),  # a closed loop or a burst had one replica unless the link said otherwise
        ("v=1&a=once", 1),
        ("v=1&a=closed&r=3", 3),
        ("v=1&u=9", None),
        ("a=closed&cu=50", None),
        ("v=2&a=closed", None),
    ],
)
def test_clients_who_wait_had_one_replica_in_old_links(query, replicas):
    assert from_query(query).scenario.num_replicas == replicas


def test_the_json_of_an_old_plan_is_read_as_its_link_was():
    body = json.loads(to_json(Scenario(arrivals="closed")))
    del body["version"]
    assert from_json(json.dumps({"scenario": body, "link": "v=1&a=closed"})).scenario.num_replicas == 1
    assert from_json(json.dumps({"scenario": body, "link": "v=2&a=closed"})).scenario.num_replicas is None


def test_the_draft_model_that_does_not_suit_is_dropped_and_the_rest_is_loaded():
    decoded = from_query("m=Qwen/Qwen3-8B&spec=2&dm=meta-llama/Llama-3.2-1B-Instruct&u=9")
    assert decoded.scenario == Scenario(model="Qwen/Qwen3-8B", num_speculative_tokens=2, users=9)
    assert len(decoded.problems) == 1
    assert "draft_model" in decoded.problems[0]


def test_a_context_that_is_too_long_for_the_model_gets_one_note():
    # GPT-2 has 1,024 positions.
    for params in ({"v": "1", "m": "openai-community/gpt2", "ctx": "99999"}, {"v": "1", "m": "openai-community/gpt2"}):
        decoded = from_params(params)
        assert decoded.scenario.max_model_len == 1024
        (note,) = [text for text in decoded.problems if "max_model_len" in text]
        assert "Planned with 1,024" in note and "default" not in note


def test_parameters_of_the_page_are_no_settings():
    decoded = from_params({"v": "1", "was": "2026-09-20~1~2~3~4~5", "note": "for the board", "u": "7"})
    assert not decoded.problems and not decoded.unknown
    assert decoded.scenario.users == 7


@pytest.mark.parametrize("config", ['{"model_type": "llama", "hidden_size": 40', '{"model_type": "llama"}'])
def test_a_config_that_cannot_be_used_is_told_once(config):
    decoded = from_params({"m": "config", "mc": config, "u": "77"})
    assert len(decoded.problems) == 1
    assert decoded.scenario == Scenario(users=77)


def test_a_setting_that_needs_another_gives_way_and_nothing_else_does():
    # A day drawn by hand has 24 hours; the link names none.
    found = from_query("day=drawn&m=Qwen%2FQwen3-8B&g=H200+SXM&u=777&ttft=2")
    kept = Scenario(model="Qwen/Qwen3-8B", gpu="H200 SXM", users=777, ttft_target_s=2.0, tpot_target_s=None)
    assert found.scenario == kept
    assert any("Hours of the day" in problem for problem in found.problems)
