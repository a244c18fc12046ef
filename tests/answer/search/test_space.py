import pytest

from planner.answer.planning import size
from planner.answer.search.outcome import EVIDENCE
from planner.answer.search.recommend import recommend
from planner.answer.search.space import (
    choices,
    deployments,
    evidence_of,
    formats,
    kv_types,
    scenario_of,
    splits,
    tuned,
)
from planner.catalog import get_gpu, get_model
from planner.memory import REFUSED_PRECISION
from planner.model import resolve_scheme
from planner.scenario.scenario import Scenario
from tests.answer.search.spaces import candidates

DENSE = Scenario()
DEEPSEEK = Scenario(model="deepseek-ai/DeepSeek-V3", gpu="H200 SXM", tensor_parallel_size=8)


def names(found):
    return {dtype for dtype, _ in found}


def sizes(found):
    keys = ("tensor_parallel_size", "pipeline_parallel_size", "attention_data_parallel_size", "expert_parallel")
    return {tuple(item[key] for key in keys) for item in found}


def test_formats_are_those_that_are_published_and_that_the_engine_runs():
    # DeepSeek-V3: block fp8 itself; NVIDIA has it in NVFP4, which Blackwell multiplies and vLLM's Marlin kernels widen
    # on Hopper, while nobody says so of MI300X; never per-tensor fp8.
    assert names(formats(DEEPSEEK, get_gpu("B200"))) == {"auto", "nvfp4", "awq_int4"}
    assert names(formats(DEEPSEEK, get_gpu("H200 SXM"))) == {"auto", "nvfp4", "awq_int4"}
    assert "nvfp4" not in names(formats(DEEPSEEK, get_gpu("MI300X")))
    assert names(formats(DEEPSEEK.replace(engine="tensorrt-llm"), get_gpu("H200 SXM"))) == {"auto", "awq_int4"}
    assert names(formats(DEEPSEEK, get_gpu("V100 SXM2 32GB"))) == {"auto"}
    checkpoints = dict(formats(DEEPSEEK, get_gpu("B200")))
    assert checkpoints["nvfp4"] == "nvidia/DeepSeek-V3-0324-NVFP4"


def test_16_bit_weights_without_a_published_fp8_checkpoint_are_quantised_while_loading():
    custom = Scenario(model="custom")
    assert dict(formats(custom, get_gpu("H100 SXM")))["fp8"] == "quantised while loading"
    assert names(formats(custom, get_gpu("A100 SXM 80GB"))) == {"auto"}  # no fp8 tensor cores
    assert names(formats(custom.replace(engine="tensorrt-llm"), get_gpu("H100 SXM"))) == {"auto"}


def test_experts_are_split_by_expert_and_attention_data_parallelism():
    found = sizes(splits(get_gpu("H200 SXM"), get_model("deepseek-ai/DeepSeek-V3")))
    assert {(8, 1, 1, False), (8, 1, 1, True), (1, 1, 8, True), (2, 1, 4, True), (8, 2, 1, False)} <= found
    assert all(tp * dp <= 8 for tp, _, dp, _ in found)
    dense = sizes(splits(get_gpu("H200 SXM"), get_model("meta-llama/Llama-3.1-8B-Instruct")))
    assert all(dp == 1 and not ep for _, _, dp, ep in dense)


def test_splits_stay_within_the_fast_link():
    assert sizes(splits(get_gpu("GH200 96GB"), get_model("Qwen/Qwen3-8B"))) == {
        (1, 1, 1, False),
        (1, 2, 1, False),
        (1, 4, 1, False),
    }
    assert (16, 1, 1, False) in sizes(splits(get_gpu("GB200"), get_model("Qwen/Qwen3-8B")))


def test_the_kv_cache_is_tried_in_fp8_where_the_gpu_reads_it():
    assert kv_types(DENSE, get_gpu("H100 SXM"), "auto") == ("auto", "fp8")
    assert kv_types(DENSE, get_gpu("A100 SXM 80GB"), "auto") == ("auto",)
    assert kv_types(DENSE.replace(kv_cache_dtype="fp8"), get_gpu("H100 SXM"), "auto") == ("fp8",)


def test_an_obvious_deployment_is_never_untried():
    # The two that an earlier search missed: a consumer Blackwell in NVFP4, and attention DP with expert parallelism.
    cheap = candidates(Scenario(price_kind="spot"), gpus=("RTX 5090",))
    assert any(x.weight_dtype.startswith("nvfp4") and x.tensor_parallel_size == 1 for x in cheap)
    wide = candidates(DEEPSEEK, gpus=("H200 SXM",))
    assert any(x.attention_data_parallel_size == 8 and x.expert_parallel and x.weight_dtype == "auto" for x in wide)


def test_settings_of_the_scenarios_gpu_do_not_follow_to_another():
    own = Scenario(usd_per_gpu_hour=1.0, max_num_seqs=32, gpu_memory_utilization=0.8)
    found = candidates(own, gpus=("H100 SXM", "L40S"), weight_dtypes=("auto",))
    assert {x.usd_per_gpu_hour for x in found if x.gpu == "H100 SXM"} == {1.0}
    assert {(x.usd_per_gpu_hour, x.max_num_seqs) for x in found if x.gpu == "L40S"} == {(None, None)}


def test_restrictions_choose_the_gpus():
    chosen, left_out = choices(DENSE)
    assert all(choice.usd_per_hour > 0 for choice in chosen)
    assert "RTX 5090" not in {choice.name for choice in chosen}  # nobody offers it on demand
    assert "no on-demand price" in left_out
    assert {choice.spec.vendor for choice in choices(DENSE.replace(gpu_vendor="AMD"))[0]} == {"AMD"}
    measured = choices(DENSE.replace(measured_only=True))[0]
    names = {choice.name for choice in measured}
    assert {"H100 SXM", "B200"} <= names
    assert not {"L4", "RTX 4090", "MI300X"} & names
    mine = {choice.name: choice.most for choice in choices(DENSE.replace(my_gpus="L40S:4, A100", most_gpus=8))[0]}
    assert mine == {"L40S": 4, "A100 SXM 80GB": 8} or set(mine) >= {"L40S"}
    assert mine["L40S"] == 4


def test_evidence_is_what_the_kernel_times_rest_on():
    assert evidence_of(DENSE) == EVIDENCE[0]
    assert evidence_of(DENSE.replace(gpu="RTX 4090")) == EVIDENCE[1]  # Ada, as L40S
    assert evidence_of(DENSE.replace(gpu="TPU v6e")) == EVIDENCE[2]


def test_engine_settings_are_varied_one_at_a_time():
    chosen, _ = choices(DEEPSEEK, ("H200 SXM",))
    parent = deployments(DEEPSEEK, chosen, ("auto",))[0]
    changed = [set(item.changes.items()) - set(parent.changes.items()) for item in tuned(DEEPSEEK, parent)]
    assert {("num_speculative_tokens", 1)} in changed  # DeepSeek-V3 has a multi-token-prediction layer
    assert {("max_num_batched_tokens", 2048)} in changed
    assert any(("engine", "sglang") in item for item in changed)
    assert {("deployment", "disaggregated")} in changed
    dense = tuned(DENSE, deployments(DENSE, choices(DENSE, ("H100 SXM",))[0], ("auto",))[0])
    assert all("num_speculative_tokens" not in item.changes for item in dense)


@pytest.mark.parametrize("changes", [{"attention_data_parallel_size": 2}, {"weight_dtype": "nonsense"}])
def test_what_other_inputs_forbid_is_no_candidate(changes):
    assert scenario_of(DENSE, changes) is None


# Deployments that their makers recommend: model, engine, GPU, GPUs of a replica, what the source says of the split,
# and bits of the weights. vllm-project/recipes @8959cf6 and its pages, sgl-project's cookbook, NIM's support matrix.
RECOMMENDED = (
    ("MiniMaxAI/MiniMax-M2.5", "vllm", "H100 SXM", 4, {"tensor_parallel_size": 4, "expert_parallel": True}, 8),
    (
        "Qwen/Qwen3-Coder-480B-A35B-Instruct-FP8",
        "vllm",
        "H200 SXM",
        8,
        {"attention_data_parallel_size": 8, "expert_parallel": True},
        8,
    ),
    ("nvidia/Qwen3.5-397B-A17B-NVFP4", "vllm", "GB200", 4, {"attention_data_parallel_size": 4}, 4),
    ("deepseek-ai/DeepSeek-V3.2-Exp", "vllm", "H200 SXM", 8, {"attention_data_parallel_size": 8}, 8),
    ("Qwen/Qwen3-Next-80B-A3B-Instruct", "vllm", "A100 SXM 80GB", 4, {}, 16),
    ("nvidia/Kimi-K2.6-NVFP4", "vllm", "B300", 4, {}, 4),
    ("zai-org/GLM-4.5", "sglang", "H100 SXM", 32, {}, 16),
    ("meituan/DeepSeek-R1-Channel-INT8", "sglang", "A100 SXM 80GB", 16, {}, 8),
    ("amd/DeepSeek-R1-MXFP4-Preview", "sglang", "MI355X", 4, {}, 4),
    ("meta-llama/Llama-3.1-405B-Instruct", "sglang", "MI300X", 8, {"tensor_parallel_size": 8}, 16),
    ("meta-llama/Llama-3.3-70B-Instruct", "sglang", "MI355X", 1, {"tensor_parallel_size": 1}, 16),
    ("mistralai/Mixtral-8x7B-Instruct-v0.1", "vllm", "L40S", 4, {}, 16),
)


@pytest.mark.parametrize(("model", "engine", "gpu", "gpus", "split", "bits"), RECOMMENDED)
def test_what_its_maker_recommends_is_among_the_candidates(model, engine, gpu, gpus, split, bits):
    scenario = Scenario(model=model, engine=engine, max_model_len=1024)
    shape = get_model(model)
    found = [
        item
        for item in deployments(scenario, choices(scenario, (gpu,))[0])
        if item.gpus_per_replica == gpus
        and split.items() <= item.changes.items()
        and abs(resolve_scheme(shape, item.changes["weight_dtype"]).bits_per_weight - bits) < 1
    ]
    assert found


def test_formats_that_the_engine_has_no_kernels_for_are_not_tried():
    # vLLM: Int8 not supported on SM100; the int8 rows of RedHatAI's checkpoints run on Ampere and Hopper alone.
    scenario = Scenario(model="meta-llama/Llama-3.1-8B-Instruct")
    assert "int8" in dict(formats(scenario, get_gpu("A100 SXM 80GB")))
    assert "int8" not in dict(formats(scenario, get_gpu("B200")))
    # SGLang: Fp8Config asks for compute capability 8.0; plain GPTQ has no CUDA kernel in 0.5.23.
    on_t4 = dict(formats(scenario.replace(engine="sglang"), get_gpu("T4")))
    assert not {"gptq_int4", "int4_g128", "int4_g32"} & set(on_t4)


def test_refused_combinations_are_never_proposed():
    scenario = Scenario(model="Qwen/Qwen3-4B", weight_dtype="bf16", users=20, num_requests=100)
    found = recommend(scenario, gpus=["T4", "V100 SXM2 32GB"])
    plans = [size(row.scenario) for row in found.candidates if row.status != "does not start"]
    assert all(plan.memory.outcome != REFUSED_PRECISION for plan in plans)
    assert all(plan.scenario.weight_dtype != "bf16" for plan in plans)
