"""Settings of benchmark scripts, and what benchmark tools work out."""

import re

import pytest

from planner.accuracy.harness import HARNESS, HARNESS_FACTS, acceptance_of, harness_settings, trtllm_bench_batch
from planner.accuracy.serving import serve
from planner.accuracy.serving_rows import read_run
from planner.scenario import fields_by_name
from planner.tables import read_table
from tests.accuracy.published_rows import BURST, CLOSED


def read(row):
    return read_run(row).scenario


def test_harness_expressions_are_worked_out():
    row = {
        "source": "aiconfigurator-silicon(inferencex-db)",
        "model": "MiniMax-M2.5",
        "gpu": "B200-180GB",
        "weight_dtype": "FP8",
        "date": "2026-04-08",
    }
    assert harness_settings(row, "vllm", isl=8192, osl=1024, users=4)["max_num_batched_tokens"] == 16384


def test_a_script_that_depends_on_the_width_sets_it_so():
    # InferenceX dsr1_fp8_b200.sh: TP 8 leaves 18 % of the memory free, TP 4 needs 95 % of it for the weights alone
    row = CLOSED | {"engine": "SGLang", "engine_version": "0.5.9", "model": "DeepSeek-R1", "isl": 8192}
    wide, narrow = read(row | {"n_gpus": 8, "tp": 8}), read(row | {"n_gpus": 4, "tp": 4})
    assert (wide.gpu_memory_utilization, narrow.gpu_memory_utilization) == (0.82, 0.95)
    assert isinstance(serve(narrow.replace(num_requests=4, concurrent_users=4)), str) is False


def test_the_batch_of_a_throughput_run_is_the_one_its_tool_sets():
    # The tool's log for Llama-3.1-8B in FP8 on one H100 at 128/128 shows max_batch_size 4096, max_num_tokens 8192.
    found = read(BURST)
    assert (found.max_num_seqs, found.max_num_batched_tokens) == (4096, 8192)
    # 70B in 16 bits on two A100: by hand (171.8 − 141.1) GB × 0.95 ÷ (4,096 × 327,680 B) = 21 requests, at least 64
    row = BURST | {"model": "LLaMA-3.1-70B", "gpu": "A100-SXM-80GB", "tp": 2, "n_gpus": 2, "isl": 2048, "osl": 2048}
    assert trtllm_bench_batch(read(row | {"weight_dtype": "FP16", "kv_dtype": "fp16"})) == (64, 2048)


def test_acceptance_follows_from_the_tokens_gained_per_step():
    assert acceptance_of(1, 1.7) == pytest.approx(0.7)
    chance = acceptance_of(3, 2.8)
    assert 1 + chance + chance**2 + chance**3 == pytest.approx(2.8)


def test_scripts_of_the_rows_date_hold():
    # InferenceX minimaxm2.5_fp8_b200.sh: 95 % of the memory and experts always parallel until 3 April 2026 (bddbf4031)
    row = CLOSED | {"model": "MiniMax-M2.5", "engine_version": "0.17.0", "n_gpus": 4, "tp": 4}
    before, after = read(row | {"date": "2026-03-28"}), read(row | {"date": "2026-04-03"})
    assert (before.gpu_memory_utilization, before.expert_parallel, before.kv_cache_dtype) == (0.95, True, "auto")
    assert (after.gpu_memory_utilization, after.expert_parallel, after.kv_cache_dtype) == (0.9, False, "fp8")
    assert (before.block_size, before.max_num_batched_tokens, after.max_num_batched_tokens) == (32, None, 2048)


def test_steps_of_a_serve_script_are_as_long_as_prompt_and_concurrency():
    # dsr1_fp4_b200_trt_slurm.sh: $(( ($CONC+$ISL+64+63)/64*64 )), at least 8,192 since 21 January 2026
    row = CLOSED | {"engine": "TensorRT-LLM", "model": "DeepSeek-R1", "weight_dtype": "FP4", "n_gpus": 8, "tp": 8}
    assert read(row | {"date": "2025-11-02"}).max_num_batched_tokens == 1152
    assert read(row | {"date": "2026-02-03"}).max_num_batched_tokens == 8192
    assert read(row | {"date": "2026-02-03", "isl": 8192, "concurrency": 64}).max_num_batched_tokens == 8320


def test_an_image_of_drafting_runs_drafts():
    row = CLOSED | {"engine": "TensorRT-LLM", "model": "DeepSeek-R1", "n_gpus": 8, "tp": 8, "date": "2026-02-06"}
    assert read(row | {"engine_version": "1.2.0rc6.post3"}).num_speculative_tokens > 0
    assert read(row | {"engine_version": "1.2.0rc6.post2"}).num_speculative_tokens == 0


def test_configurations_that_only_draft_draft():
    # nvidia-master.yaml: above 64 users DeepSeek-R1 in FP8, and at TP 4 without expert parallelism Qwen3.5, are -mtp
    deepseek = CLOSED | {"engine": "SGLang", "engine_version": "0.5.9", "model": "DeepSeek-R1", "n_gpus": 8, "tp": 8,
                         "date": "2026-03-25"}  # fmt: skip
    few, many = read(deepseek | {"concurrency": 64}), read(deepseek | {"concurrency": 256})
    assert (few.num_speculative_tokens, few.max_num_seqs) == (0, 128)
    assert (many.num_speculative_tokens, many.max_num_seqs) == (2, 512)
    qwen = deepseek | {"model": "Qwen3.5-397B-A17B", "n_gpus": 4, "tp": 4, "date": "2026-03-20"}
    assert read(qwen).num_speculative_tokens == 3
    assert read(qwen | {"ep": 4}).num_speculative_tokens == 0
    # the same runs in another sample of the source, without a date
    assert read(qwen | {"source": "aiconfigurator-silicon(aic-gap)", "date": None}).num_speculative_tokens == 3


def test_a_script_chooses_its_split_by_concurrency():
    # dsr1_fp4_b200_trt_slurm.sh at TP 4: experts parallel above 32 users, attention data-parallel from 256 on
    row = CLOSED | {"engine": "TensorRT-LLM", "model": "DeepSeek-R1", "weight_dtype": "FP4", "n_gpus": 4, "tp": 4,
                    "date": "2025-11-02", "engine_version": None}  # fmt: skip
    few, some, many = (read(row | {"concurrency": users}) for users in (32, 64, 256))
    assert [x.expert_parallel for x in (few, some, many)] == [False, True, True]
    assert [x.attention_data_parallel_size for x in (few, some, many)] == [1, 1, 4]
    assert many.tensor_parallel_size == 1
    assert read(row | {"isl": 8192, "concurrency": 64}).attention_data_parallel_size == 4
    assert read(row | {"date": "2025-12-15", "concurrency": 256}).attention_data_parallel_size == 1


def test_a_client_that_repeats_a_hundred_prompts_finds_them_in_vllms_cache():
    # 64 users of 2000 and 100 tokens on one H200: TTFT 121.73 and TPOT 9.74 ms (silicon_sample.csv @095f58a51). Were
    # every prompt computed, those would be 118,000 prompt tokens/s: 1.9 PFLOP/s of the 8 billion weights, 96 % of peak.
    row = CLOSED | {"source": "aiconfigurator-silicon(aic-gap)", "engine_version": "0.12.0", "n_gpus": 1, "tp": 1}
    row |= {"model": "Llama-3.1-8B-Instruct-FP8", "gpu": "H200-SXM-141GB", "isl": 2000, "osl": 100, "concurrency": 64}
    repeated = read(row)
    assert (repeated.shared_prefix_tokens, repeated.num_prefix_groups, repeated.num_requests) == (2000, 100, 3200)
    assert serve(repeated).tpot_s.mean == pytest.approx(9.74e-3, rel=0.5)
    assert serve(repeated.replace(shared_prefix_tokens=0)).tpot_s.mean > 2 * 9.74e-3
    # AIConfigurator's generator: max_num_tokens = max_batch_size + isl + 1500, and an FP8 cache for FP8 weights
    assert (repeated.max_num_batched_tokens, repeated.kv_cache_dtype) == (64 + 2000 + 1500, "fp8")
    others = (row | {"engine": "SGLang"}, row | {"engine": "TensorRT-LLM"}, row | {"source": CLOSED["source"]})
    assert [read(other).shared_prefix_tokens for other in others] == [0, 0, 0]


def test_aiconfigurators_own_runs_of_tensorrt_llm_are_behind_dynamo():
    row = CLOSED | {"engine": "TensorRT-LLM", "source": "aiconfigurator-silicon(aic-gap)", "engine_version": "1.0.0rc3"}
    assert read(row).behind_dynamo
    assert not read(row | {"source": CLOSED["source"]}).behind_dynamo
    assert read(CLOSED | {"notes": "image=nvcr.io/nvidia/ai-dynamo/sglang-runtime"}).behind_dynamo


def test_every_line_sets_fields_and_says_where_it_is_published():
    known = {*fields_by_name(), *HARNESS_FACTS}
    for line in read_table(HARNESS):
        assert line["citation"]
        assert re.fullmatch(r"(20\d\d-\d\d-\d\d)?", line["since"])
        for setting in line["settings"].split("; "):
            name, _, text = setting.partition("=")
            assert name in known, line
            assert text
        source, model = line["source"].split("|")[0], line["model"].split("|")[0]
        row = {"source": source, "model": model, "gpu": line["gpu"].lstrip("^"), "tp": line["tp"],
               "weight_dtype": line["weights"], "engine_version": line["version"], "date": line["since"]}  # fmt: skip
        assert harness_settings(row, line["engine"] or "vllm", isl=1024, osl=1024, users=16)
