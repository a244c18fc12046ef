"""The vLLM command, read back."""

import json

import pytest

from planner.catalog.flags import flags_of
from planner.deploy.vllm import vllm_launch

from .cases import random_plans, sized

COMMAND = "vllm serve"
#: field of the scenario → flag, default when the flag is absent, and how its text is read (vLLM's own flag names)
READ = {
    "max_model_len": ("--max-model-len", None, int),
    "tensor_parallel_size": ("--tensor-parallel-size", 1, int),
    "pipeline_parallel_size": ("--pipeline-parallel-size", 1, int),
    "gpu_memory_utilization": ("--gpu-memory-utilization", None, float),
    "max_num_seqs": ("--max-num-seqs", None, int),
    "max_num_batched_tokens": ("--max-num-batched-tokens", None, int),
    "block_size": ("--block-size", None, int),
    "enforce_eager": ("--enforce-eager", False, lambda text: True),
    "images_per_prompt": ("--limit-mm-per-prompt", None, lambda text: json.loads(text).get("image")),
}


def read(words, version):
    """Flags and values of a command line, by the flag list of the release."""
    known, found, rest = flags_of(COMMAND, version), {}, list(words)
    while rest:
        name = rest.pop(0)
        assert name.startswith("-"), name
        negated = name not in known
        flag = known[name.replace("--no-", "--", 1)]
        found[name] = (not negated) if flag.kind == "bool" else rest.pop(0)
    return found


def test_the_command_read_back_names_the_plans_own_settings():
    for plan in random_plans(150, seed=2, engines=["vllm", "vllm-0.19"]):
        started, scenario = vllm_launch(plan), plan.scenario
        words = started.words()
        assert words[:3] == ("vllm", "serve", started.model)
        flags = read(words[3:], started.version)
        for name, (flag, default, value_of) in READ.items():
            if name == "images_per_prompt" and (scenario.media == "none" or started.version < "0.9"):
                continue
            value = value_of(flags[flag]) if flag in flags else default
            unmet = any(flag in text for text in started.unmet)
            assert unmet or value == getattr(scenario, name), (name, words)
        assert ("--enable-expert-parallel" in flags) or not scenario.expert_parallel or started.unmet
        if scenario.attention_data_parallel_size > 1 and "--data-parallel-size" in flags:
            assert int(flags["--data-parallel-size"]) == scenario.attention_data_parallel_size


def test_what_the_plan_leaves_to_the_engine_is_not_in_the_command():
    assert vllm_launch(sized()).words() == (
        *("vllm", "serve", "meta-llama/Llama-3.1-8B-Instruct", "--max-model-len", "8192"),
    )


@pytest.mark.parametrize(("version", "flag"), [("0.13.0", None), ("0.14.0", "--no-async-scheduling")])
def test_a_switch_is_said_only_where_the_release_has_it_on(version, flag):
    # vLLM 0.14.0 turned async scheduling on by default.
    words = vllm_launch(sized(engine_version=version, async_scheduling="off")).words()
    assert (flag in words) if flag else not any("async" in word for word in words)


def test_the_id_is_the_checkpoint_of_the_planned_format():
    words = vllm_launch(sized(model="Qwen/Qwen3-32B", weight_dtype="fp8_block", tensor_parallel_size=2)).words()
    assert words[2] == "Qwen/Qwen3-32B-FP8"
    assert "--quantization" not in words


def test_without_a_checkpoint_vllm_quantises_while_it_loads():
    # No publisher of the catalog has an 8-bit TinyLlama.
    words = vllm_launch(
        sized(model="TinyLlama/TinyLlama-1.1B-Chat-v1.0", weight_dtype="fp8", max_model_len=2048)
    ).words()
    assert words[words.index("--quantization") + 1] == "fp8"


def test_drafting_before_and_after_the_one_json_flag():
    draft = {"num_speculative_tokens": 3, "draft_model": "meta-llama/Llama-3.2-1B-Instruct"}
    old = vllm_launch(sized(engine_version="0.8.2", **draft)).words()
    assert old[-4:] == ("--speculative-model", draft["draft_model"], "--num-speculative-tokens", "3")
    new = vllm_launch(sized(engine_version="0.8.3", **draft)).words()
    assert json.loads(new[-1]) == {"method": "draft_model", "model": draft["draft_model"], "num_speculative_tokens": 3}


def test_an_eagle_head_is_named_by_its_method():
    head = "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B"
    words = vllm_launch(sized(num_speculative_tokens=3, draft_model=head)).words()
    assert json.loads(words[-1]) == {"method": "eagle3", "model": head, "num_speculative_tokens": 3}


def test_a_replica_over_two_nodes():
    deepseek = {"model": "deepseek-ai/DeepSeek-V3", "gpu": "H100 SXM"}
    piped = vllm_launch(sized(tensor_parallel_size=8, pipeline_parallel_size=2, **deepseek))
    assert piped.num_nodes == 2
    assert piped.words(1)[-7:] == ("--nnodes", "2", "--node-rank", "1", "--master-addr", "HEAD_ADDRESS", "--headless")
    ranks = vllm_launch(
        sized(attention_data_parallel_size=16, expert_parallel=True, gpu="H200 SXM", model=deepseek["model"])
    )
    assert ranks.words(1)[-3:] == ("--data-parallel-start-rank", "8", "--headless")


def test_adapters_take_the_next_rank_that_vllm_has():
    words = vllm_launch(sized(num_lora_adapters=4, max_lora_rank=24)).words()
    assert words[words.index("--max-lora-rank") + 1] == "32"


def test_before_the_fallback_the_user_says_half():
    # T4 has no bf16; vLLM falls back by itself from 0.9 on.
    small = {"gpu": "T4", "model": "Qwen/Qwen3-4B", "max_model_len": 2048}
    old = vllm_launch(sized(engine_version="0.8.5", **small)).words()
    assert old[old.index("--dtype") + 1] == "half"
    assert "--dtype" not in vllm_launch(sized(**small)).words()


def test_kernels_of_the_experts():
    # vllm/envs.py: a variable asks for AMD's AITER, in releases without --moe-backend too (catalog/engine_flags.csv)
    amd = vllm_launch(sized(gpu="MI300X", moe_runner_backend="aiter"))
    assert ("VLLM_ROCM_USE_AITER", "1") in amd.env
    assert "--moe-backend" not in amd.words()
    words = vllm_launch(sized(moe_runner_backend="triton")).words()
    assert words[words.index("--moe-backend") + 1] == "triton"
