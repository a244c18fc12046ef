"""Each common mistake of the seed article is a warning exactly when the scenario makes it."""

import pytest

from planner.answer import advice
from planner.answer.planning import plan, size
from planner.answer.report import memory_rows
from planner.catalog.gpus import get_gpu, gpu_names, recalled_figures
from planner.scenario import fingerprint
from planner.scenario.fields import fields_by_name
from planner.scenario.scenario import Scenario
from planner.units import GIB
from tests.answer.cases import planned

BASE = {"num_requests": 400, "seed": 3}


def kinds(**changes):
    return {finding.kind for finding in plan(Scenario(**{**BASE, **changes})).findings}


@pytest.mark.parametrize(
    ("kind", "makes", "avoids"),
    [
        ("one_at_a_time", {"max_num_seqs": 1, "users": 10}, {}),
        (
            "short_prompts",
            {"lengths": "constant", "prompt_mean_tokens": 40.0, "output_mean_tokens": 40.0},
            {"lengths": "constant", "prompt_mean_tokens": 1500.0, "output_mean_tokens": 200.0},
        ),
        ("cache_ignored", {"gpu": "RTX 4090", "max_model_len": 65_536, "users": 10}, {}),
        ("few_requests", {"demand": "daily", "requests_per_day": 2000.0}, {}),
        ("api_cheaper", {"usd_per_gpu_hour": 50.0}, {"users": 1000, "usd_per_gpu_hour": 0.01}),
        ("small_budget", {"max_num_seqs": 256, "max_num_batched_tokens": 128}, {"max_num_seqs": 64}),
        (
            "prefix_not_cached",
            {"shared_prefix_tokens": 400, "enable_prefix_caching": False},
            {"shared_prefix_tokens": 400},
        ),
        (
            "lora_slots",
            {"num_lora_adapters": 50, "max_loras": 1, "num_replicas": 1},
            {"num_lora_adapters": 50, "max_loras": 50},
        ),
        (
            "few_prefixes",
            {"router": "prefix_affinity", "shared_prefix_tokens": 400},
            {"router": "prefix_affinity", "shared_prefix_tokens": 400, "num_prefix_groups": 60},
        ),
        ("without_effect", {"max_loras": 4}, {"max_loras": 4, "num_lora_adapters": 9}),
        (
            "without_effect",
            {"mamba_full_memory_ratio": 0.5},
            {"mamba_full_memory_ratio": 0.5, "model": "Qwen/Qwen3.5-9B", "engine": "sglang", "gpu": "H200 SXM"},
        ),
        (
            "without_effect",
            {"encoder_data_parallel": True, "model": "mistralai/Mistral-Small-3.2-24B-Instruct-2506"},
            {"encoder_data_parallel": True, "model": "Qwen/Qwen2.5-VL-7B-Instruct"},
        ),
        ("without_effect", {"media": "none"}, {"media": "none", "model": "Qwen/Qwen2.5-VL-7B-Instruct"}),
        ("without_effect", {"media": "images"}, {"media": "images", "model": "Qwen/Qwen2.5-VL-7B-Instruct"}),
    ],
)
def test_a_mistake_is_a_warning_exactly_when_it_is_made(kind, makes, avoids):
    assert kind in kinds(**makes)
    assert kind not in kinds(**avoids)


def test_a_cache_that_is_small_because_no_more_was_asked_for_is_no_mistake():
    # llama.cpp: 16.1 GB of weights and one slot of 8,192 tokens, 1 GiB, on 80 GiB; on 18 GiB two more fit at most.
    assert "cache_ignored" not in kinds(engine="llama.cpp")
    assert "cache_ignored" in kinds(engine="llama.cpp", gpu="custom", gpu_memory_gib=18.0)


def test_the_average_hides_the_tail():
    bursty = kinds(arrivals="bursty", burst_cv=4.0, num_replicas=1, users=900)
    steady = kinds(users=10, lengths="constant")
    assert "average_only" in bursty
    assert "average_only" not in steady


def test_reserving_engines_are_called_out():
    assert "reserved" in kinds(engine="orca")


SMALL = Scenario(num_requests=400)


def test_a_few_requests_are_not_a_few_thousand():
    def told(per_day):
        done = plan(SMALL.replace(demand="daily", requests_per_day=per_day))
        return next(finding.text for finding in done.findings if finding.kind == "few_requests")

    assert told(12.0).startswith("Self-hosting for a few requests a day: 12 requests a day cost")
    assert told(2000.0).startswith("Self-hosting for a few thousand requests a day: 2,000 requests a day cost")


def test_idle_replicas_are_told():
    found = plan(SMALL.replace(arrivals="closed", concurrent_users=1, num_replicas=3)).findings
    text = next(finding.text for finding in found if finding.kind == "idle_replicas")
    assert text == "2 of 3 replicas stay idle: there is only 1 user."


def test_an_engine_that_is_short_of_memory_under_load_is_told():
    done = size(SMALL.replace(engine="tgi", model="meta-llama/Llama-3.1-70B-Instruct", gpu="H200 SXM"))
    assert done.fits
    text = next(finding.text for finding in done.findings if finding.kind == "runs_short")
    assert f"{-done.memory.free_bytes / GIB:.2f} GiB more than the GPU has" in text
    assert dict(memory_rows(done))["Short of a full step"] == f"{-done.memory.free_bytes / GIB:.2f} GiB"
    assert "runs_short" not in {finding.kind for finding in size(SMALL).findings}


# Eight GPUs a node in an H100 SXM server.
@pytest.mark.parametrize(("tp", "warns"), [(8, False), (16, True)])
def test_a_split_over_nodes_is_told(tp, warns):
    scenario = Scenario(tensor_parallel_size=tp)
    assert (advice.cross_node(scenario) is not None) == warns


def test_idle_replicas_by_hand():
    burst = Scenario(arrivals="once", num_requests=50, num_replicas=53)
    assert advice.idle_replicas(burst).text.startswith("3 of 53 ")
    assert advice.idle_replicas(burst.replace(num_replicas=50)) is None
    assert advice.idle_replicas(burst.replace(arrivals="poisson")) is None


@pytest.mark.parametrize("changes", [{}, {"users": 3000, "num_replicas": 1}, {"engine": "orca"}, {"arrivals": "once"}])
def test_warnings_stand_before_notes_and_speak_of_inputs_that_there_are(changes):
    found = planned(**changes).findings
    order = [finding.severity for finding in found]
    assert order == sorted(order, key=lambda severity: severity != "warning")
    assert set(order) <= {"warning", "note"}
    assert {finding.field for finding in found} <= {"", *fields_by_name()}


def test_adapters_that_share_the_default_slot_are_named_with_what_to_set():
    # vLLM's default is one slot (--max-loras 1), which costs many times the GPUs of four.
    one = planned(num_lora_adapters=4)
    found = next(finding for finding in one.findings if finding.kind == "lora_slots")
    assert "4 LoRA adapters share 1 slot" in found.text
    assert "the default of vllm" in found.text
    assert found.change == {"max_loras": 4}
    mended = planned(num_lora_adapters=4, **found.change)
    assert "lora_slots" not in {finding.kind for finding in mended.findings}
    assert mended.num_gpus < one.num_gpus


def test_what_the_catalog_has_without_a_source_is_named():
    said = advice.unsourced_model(Scenario(model="mistralai/Codestral-22B-v0.1"))
    assert "config.json and the published number of parameters" in said.text
    assert advice.unsourced_model(Scenario()) is None
    recalled = next(name for name in gpu_names() if recalled_figures(name))
    assert "recalled, not read from a source" in advice.unsourced_gpu(Scenario(gpu=recalled)).text
    estimated = next(name for name in gpu_names() if get_gpu(name).estimated_fields)
    assert "estimated (" in advice.unsourced_gpu(Scenario(gpu=estimated)).text
    assert advice.unsourced_gpu(Scenario(gpu="custom")) is None


def test_every_plan_that_rests_on_own_runs_says_so():
    base = Scenario(num_requests=200)
    own = base.replace(calibration_runs=3, calibration_prefill=0.8, calibration_of=fingerprint(base))
    found = advice.calibration(own)
    assert (found.kind, found.severity) == ("calibration", "note")
    assert "calibrated to your 3 measurements" in found.text and "prefill × 0.8" in found.text
    busier = advice.calibration(own.replace(calibration_load="closed_48_512_128_16", users=900))
    said = "for 48 concurrent users with prompts of 512 tokens, 16 of them shared, and answers of 128, not for"
    assert busier.severity == "warning" and said in busier.text
    older = advice.calibration(own.replace(calibration_load="0123"))  # a digest, as links had it
    assert "for another load, not for this traffic" in older.text
    elsewhere = advice.calibration(own.replace(gpu="L4", tensor_parallel_size=2))
    assert elsewhere.severity == "warning"
    assert "another GPU and another split" in elsewhere.text
    assert advice.calibration(base) is None


def test_a_start_in_doubt_is_a_warning_with_the_change_that_settles_it():
    base = Scenario(**BASE, model="Qwen/Qwen3-8B", gpu="RTX 4090", engine_version="0.33.0", kv_cache_dtype="auto")
    pool = size(base.replace(max_model_len=8192)).memory.kv_pool_bytes
    length = int((pool - 0.2 * GIB) / 147_456)  # 36 layers × 8 heads × 2 × 128 × 2 bytes a token
    done = size(base.replace(max_model_len=length))
    (found,) = (finding for finding in done.findings if finding.kind == "start_in_doubt")
    assert (found.severity, found.field, found.text) == ("warning", "max_model_len", done.memory.doubt)
    assert sum(done.memory.doubt in finding.text for finding in done.findings) == 1
    settled = size(base.replace(**found.change))
    assert settled.fits
    assert "start_in_doubt" not in {finding.kind for finding in settled.findings}


def test_a_note_begins_with_a_capital_or_with_the_name_as_its_owner_writes_it():
    scenario = Scenario(model="deepseek-ai/DeepSeek-V3", gpu="H200 SXM", tensor_parallel_size=8)
    notes = [item.text for item in size(scenario).findings]
    assert any("GPUs with 70 GiB and more" in text and text.startswith("vLLM ") for text in notes)
    assert all(text[0].isupper() or text[0].isdigit() or text.startswith("vLLM ") for text in notes)
