"""Reading published rows, scoring, and that simulated rows obey the arithmetic of their workload."""

import pytest

from planner.accuracy.serving_rows import RowSkipped, read_run
from planner.errors import InvalidInput
from planner.scenario.scenario import Scenario
from tests.accuracy.published_rows import BURST, CLOSED


def read(row):
    return read_run(row).scenario


def test_a_closed_loop_row_is_read():
    found = read(CLOSED)
    assert (found.model, found.gpu, found.engine) == ("meta-llama/Llama-3.1-70B-Instruct", "B200", "vllm")
    assert (found.tensor_parallel_size, found.num_replicas) == (2, 1)
    assert (found.arrivals, found.concurrent_users, found.num_requests) == ("closed", 4, 40)
    assert (found.weight_dtype, found.kv_cache_dtype) == ("fp8", "fp8")
    assert found.max_num_batched_tokens == 8192  # published by the benchmark's scripts
    assert (found.measured_requests, found.exact_output_limit) == ("all", True)
    # no version is stated: vLLM 0.11.0 was current on 29 October 2025 (0.11.1 came on 19 November)
    assert found.engine_version == "0.11.0"


def test_attention_data_parallelism_takes_the_place_of_tensor_parallelism():
    row = BURST | {
        "model": "Qwen3-235B-A22B",
        "n_gpus": 4,
        "tp": 1,
        "ep": 4,
        "notes": "attention-DP4+EP4 (doc label DEP4)",
    }
    found = read(row)
    assert (found.tensor_parallel_size, found.attention_data_parallel_size, found.expert_parallel) == (1, 4, True)


@pytest.mark.parametrize("change", [{"model": "Grok-9"}, {"gpu": "Cerebras"}, {"isl": None}, {"notes": "beam 4"}])
def test_a_row_that_cannot_be_planned_is_skipped_with_a_reason(change):
    with pytest.raises((RowSkipped, InvalidInput), match=r"\w+"):
        read_run(CLOSED | change)


GPT_OSS_512 = CLOSED | {
    "source": "aiconfigurator-silicon(inferencex-db)",
    "model": "gpt-oss-120b",
    "gpu": "H100-SXM-80GB",
    "weight_dtype": "FP4",
    "concurrency": 512,
    "date": "2025-12-05",
    "notes": "silicon_concurrency=512",
}


def test_a_client_limit_that_a_faulty_script_published_as_concurrency_is_not_planned():
    # SemiAnalysisAI/InferenceX @4e135fd3f replaces "--max-concurrency 512" by "$CONC" on 8 December 2025
    with pytest.raises(RowSkipped, match="client's limit"):
        read_run(GPT_OSS_512)
    for kept in ({"date": "2026-03-27"}, {"gpu": "B200-180GB"}, {"concurrency": 64, "notes": "silicon_concurrency=64"}):
        assert read(GPT_OSS_512 | kept).model == "openai/gpt-oss-120b"


def test_a_width_that_is_the_product_of_two_is_read_as_that_of_the_run():
    # InferenceX nvidia-master.yaml @029199755, gptoss-fp4-h200-trt: { tp: 2, ep: 2 } and none with tp 4 and ep 2
    row = GPT_OSS_512 | {"engine": "TensorRT-LLM", "gpu": "H200-SXM-141GB", "concurrency": 64, "date": "2025-12-15"}
    wide = row | {"tp": 4, "n_gpus": 4, "notes": "moe_tp=2 attn_dp=1"}
    found = read(wide | {"ep": 2})
    assert (found.tensor_parallel_size, found.attention_data_parallel_size, found.num_replicas) == (2, 1, 1)
    assert found.expert_parallel
    assert read(wide | {"ep": 1, "notes": "moe_tp=4"}).tensor_parallel_size == 4
    # gptoss_fp4_h200_trt_slurm.sh: moe_config backend TRITON
    assert found.moe_runner_backend == "triton"


def test_a_script_that_drafts_admits_one_prompt_beside_its_drafts():
    # InferenceX dsr1_fp8_b200_trt_mtp.sh @5d517074c: --max_num_tokens ((MTP+1)*MAX_BATCH_SIZE+ISL+64+63)/64*64, MTP 3
    row = GPT_OSS_512 | {"model": "DeepSeek-R1", "engine": "TensorRT-LLM", "gpu": "B200-180GB", "weight_dtype": "FP8"}
    run = {"engine_version": "1.2.0rc6.post3", "concurrency": 64, "isl": 1024, "date": "2026-02-05", "notes": ""}
    found = read(row | run)
    assert (found.num_speculative_tokens, found.max_num_seqs) == (3, 64)
    assert found.max_num_batched_tokens == (4 * 64 + 1024 + 127) // 64 * 64 == 1344


@pytest.mark.parametrize(
    ("notes", "fields"),
    [
        ("--enforce-eager (no CUDA graphs) --max-model-len 8192 --gpu-memory-utilization 0.90, random fixed lengths",
         {"enforce_eager": True, "max_model_len": 8192, "gpu_memory_utilization": 0.9}),
        ("case: # --max-num-batched-tokens 4096; serve:  vllm serve x -tp 8 --max-num-batched-tokens 8192",
         {"max_num_batched_tokens": 4096}),
        ("TP8; --max-running-requests 32 --chunked-prefill-size 8192 --mem-fraction-static 0.89, mixed chunk",
         {"max_num_seqs": 32, "max_num_batched_tokens": 8192, "gpu_memory_utilization": 0.89}),
        ("python3 -m sglang.launch_server --model x --chunked-prefill-size -1", {"chunked_prefill": "off"}),
        ("vllm serve x --kv-cache-dtype fp8", {"kv_cache_dtype": "fp8"}),
        ("--quantization awq (AWQ path, not Marlin), float16", {"plain_awq": True}),
        ("vllm serve x --quantization awq_marlin", {"plain_awq": False}),
        ("fixed lengths, ignore-eos; prefix caching off; JLSE", {"enable_prefix_caching": False}),
        ("prefix 200 + input 30, output 50; no prefix cache",
         {"shared_prefix_tokens": 200, "enable_prefix_caching": False}),
        ("same prompt in all requests (prefix cache hits); batches with a barrier", {"shared_prefix_tokens": 1024}),
        ("repeated prompt: prefix cache hits, so TTFT left out", {"shared_prefix_tokens": 1024}),
        ("benchmark_throughput ShareGPT 1000 prompts; --enable-lora --max-loras 1 --max-lora-rank 8",
         {"num_lora_adapters": 1, "max_loras": 1, "max_lora_rank": 8, "offline": True}),
        ("batch of 1 random-token prompts in one LLM.generate, fixed lengths", {"offline": True}),
        ("batch 1; offline engine, input ids given (no tokenizer, no HTTP)", {"offline": True}),
        ("section: 1; vllm bench serve, request-rate inf unless concurrency given", {"offline": False}),
        ("TP8 conc 4, non-MTP; blog: kernel choice", {"num_speculative_tokens": 0}),
    ],
)  # fmt: skip
def test_settings_in_the_words_of_published_notes(notes, fields):
    found = read(CLOSED | {"source": "another", "notes": notes})
    assert {name: getattr(found, name) for name in fields} == fields


@pytest.mark.parametrize(
    ("notes", "drafts", "per_step"),
    [
        ("EAGLE on MT-bench, max_num_seqs 1, K=2, accepted length 1.89; SPECULATIVE", 2, 1.89),
        ("SPECULATIVE DECODING ON (accept=2.46); --speculative-num-steps 3 --speculative-num-draft-tokens 4", 3, 2.46),
        ("SPECULATIVE DECODING ON (accept=2.61); --speculative-algorithm EAGLE --speculative-num-steps 3", 3, 2.61),
    ],
)
def test_drafts_and_acceptance_are_those_published(notes, drafts, per_step):
    found = read(CLOSED | {"notes": notes})
    assert found.num_speculative_tokens == drafts
    assert sum(found.speculative_acceptance**power for power in range(drafts + 1)) == pytest.approx(per_step)


@pytest.mark.parametrize(
    "notes", ["SPECULATIVE DECODING ON; section: 4. MTP in SGLang", "SPECULATIVE DECODING ON (accept=2.61)"]
)
def test_drafting_of_an_unknown_number_of_tokens_is_not_planned(notes):
    with pytest.raises(RowSkipped, match="not stated how many tokens are drafted"):
        read_run(CLOSED | {"notes": notes})


def test_drafts_of_unknown_acceptance_take_the_default_of_the_form():
    found = read(CLOSED | {"notes": "--speculative-algorithm EAGLE --speculative-num-steps 1"})
    assert (found.num_speculative_tokens, found.speculative_acceptance) == (1, Scenario().speculative_acceptance)


@pytest.mark.parametrize(
    ("columns", "notes", "widths"),
    [
        ({"tp": 8}, "--tp 8 --dp 4 --ep 4 --enable-dp-attention --trust-remote-code", (2, 4, True)),
        ({"tp": 8}, "--tp-size 8 --enable-dp-attention --enable-torch-compile", (1, 8, True)),
        ({"tp": 8}, "MoE run lists TP only (llm_options for MoE sets enable_attention_dp: true)", (1, 8, True)),
        ({"tp": 2, "ep": 8}, "gemm=fp8 moe=fp8 moe_tp=1 attn_dp=4 batch_size=16", (1, 4, True)),
        ({"tp": 4}, "gemm=fp8 moe=fp8 moe_tp=8 attn_dp= batch_size=16", (4, 2, True)),
        ({"tp": 8}, "vllm serve x -tp 8 --enable-expert-parallel", (8, 1, True)),
        ({"tp": 8}, "TP8, expert parallel off", (8, 1, False)),
    ],
)
def test_widths_of_a_mixture(columns, notes, widths):
    found = read(CLOSED | {"model": "Qwen3-235B-A22B", "n_gpus": 8, "source": "x", "notes": notes} | columns)
    assert (found.tensor_parallel_size, found.attention_data_parallel_size, found.expert_parallel) == widths


def test_experts_spread_over_more_gpus_than_a_row_counts_tell_their_number():
    # AIConfigurator's silicon_sample.csv states no number of GPUs; one cannot hold 235 GB
    notes = "gemm=fp8 moe=fp8 moe_tp=4 attn_dp= batch_size=16"
    found = read(CLOSED | {"model": "Qwen3-235B-A22B", "source": "x", "notes": notes, "n_gpus": 2, "tp": 2})
    assert (found.tensor_parallel_size, found.attention_data_parallel_size, found.num_replicas) == (2, 2, 1)


@pytest.mark.parametrize(
    ("change", "scheme"),
    [
        ({"weight_dtype": "FP8", "model": "DeepSeek-R1-0528"}, "fp8_block"),
        ({"weight_dtype": "FP8", "model": "Qwen3-32B-FP8"}, "fp8_block"),
        ({"weight_dtype": "FP8"}, "fp8"),
        ({"weight_dtype": "FP4", "model": "gpt-oss-120b"}, "mxfp4"),
        ({"weight_dtype": "MXFP4", "model": "gpt-oss-120b", "engine": "Ollama"}, "mxfp4"),
        ({"weight_dtype": "MXFP4", "model": "gpt-oss-120b", "engine": "llama.cpp"}, "gguf_q8_0"),
        ({"weight_dtype": "", "notes": "gemm=fp8_block moe=fp8_block"}, "fp8_block"),
        ({"weight_dtype": "NVFP4"}, "nvfp4"),
        ({"weight_dtype": "INT4(native QAT)", "model": "Kimi-K2.5", "n_gpus": 8, "tp": 8}, "int4_g32"),
        ({"weight_dtype": "INT4(W4A16 g128)"}, "int4_g128"),
        ({"weight_dtype": "AWQ-INT4 (GEMM kernel)"}, "awq_int4"),
        ({"weight_dtype": "4-bit(q4f16/GPTQ/AWQ/Q4 by engine)", "engine": "Llama.cpp"}, "gguf_q4_k_m"),
        ({"weight_dtype": "4-bit(q4f16/GPTQ/AWQ/Q4 by engine)", "engine": "MLC LLM"}, "int4_g128"),
        ({"weight_dtype": "INT8-eetq"}, "gptq_int8"),
        ({"weight_dtype": "INT8 W8A8"}, "int8"),
        ({"weight_dtype": "F16"}, "fp16"),
        ({"weight_dtype": ""}, "bf16"),
    ],
)
def test_weights_as_tables_name_them(change, scheme):
    assert read(CLOSED | {"notes": ""} | change).weight_dtype == scheme


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"tp": 0}, "tp = '0' is not valid: expected a number from 1"),
        ({"n_gpus": 0}, "n_gpus = '0' is not valid: expected a number from 1"),
        ({"n_gpus": 3}, r"n_gpus = 3 is not valid: expected a multiple of 2, the GPUs of one replica \(TP 2"),
        ({"notes": "--gpu-memory-utilization 9"}, "gpu_memory_utilization = 9 .* from 0.05 to 1"),
        ({"notes": "--max-model-len -4096"}, "max_model_len = -4,096 .* from 16"),
        ({"isl": -1}, "isl = '-1' is not valid: expected a number from 0"),
        ({"arrival": "in waves"}, "arrival = 'in waves' is not valid: expected one of concurrency, poisson, offline"),
        ({"arrival": None, "concurrency": None}, "arrival = '' is not valid"),
        ({"concurrency": None}, "concurrency = '' is not valid: expected a number from 1"),
        ({"arrival": "poisson", "request_rate_rps": 0}, "request_rate_rps = 0 .* at least 0.000001 per"),
    ],
)
def test_nonsense_is_named_with_what_would_be_valid(change, told):
    with pytest.raises(InvalidInput, match=told):
        read_run(CLOSED | change)


def test_kernels_of_the_experts_are_chosen_by_flag():
    row = CLOSED | {"engine": "SGLang", "model": "Qwen3-235B-A22B", "source": "sgl-cookbook", "tp": 8, "n_gpus": 8}
    assert read(row).moe_runner_backend == "auto"
    flagged = read(row | {"notes": "serve: --moe-runner-backend flashinfer_trtllm"})
    assert flagged.moe_runner_backend == "flashinfer_trtllm"


def test_llama_cpp_has_a_slot_for_each_stream_that_was_measured():
    row = CLOSED | {"engine": "llama.cpp", "weight_dtype": "Q4_K_M", "notes": "", "concurrency": 8}
    assert read(row).max_num_seqs == 8
    assert read(row | {"concurrency": 1}).max_num_seqs == read(row | {"engine": "Ollama"}).max_num_seqs


@pytest.mark.parametrize(
    ("notes", "kernels"),
    [
        ("", "auto"),
        ("VLLM_ROCM_USE_AITER=0", "auto"),
        ("VLLM_ROCM_USE_AITER=1 vllm serve", "aiter"),
        ("rocm/vllm container, AITER; --max-num-seqs 1500", "aiter"),
        ("ATOM plugin of vLLM", "aiter"),
    ],
)
def test_aiter_is_asked_for_by_its_variable_or_name(notes, kernels):
    row = CLOSED | {"engine": "vLLM", "model": "Qwen3-235B-A22B", "gpu": "MI300X", "source": "a blog"}
    assert read(row | {"tp": 8, "n_gpus": 8, "notes": notes}).moe_runner_backend == kernels
