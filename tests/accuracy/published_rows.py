"""Rows in the form of the public sources: serving benchmarks, a start-up log, a kernel step."""

CLOSED = {
    "id": "closed",
    "source": "aiconfigurator-silicon(inferencex-db)",
    "date": "2025-10-29",
    "engine": "vLLM",
    "engine_version": None,
    "model": "Llama-3.1-70B",
    "gpu": "B200-180GB",
    "n_gpus": 2,
    "tp": 2,
    "pp": 1,
    "ep": 1,
    "weight_dtype": "FP8",
    "kv_dtype": None,
    "isl": 1024,
    "osl": 1024,
    "arrival": "concurrency",
    "concurrency": 4,
    "notes": "harness RANDOM_RANGE_RATIO 0.8 (lengths uniform 0.8-1.0 x nominal), closed loop; gemm=fp8 attn_dp=1",
}


BURST = CLOSED | {
    "id": "burst",
    "source": "trtllm-perf-overview-v0.17",
    "engine": "TensorRT-LLM",
    "engine_version": "0.17",
    "model": "LLaMA-3.1-8B",
    "gpu": "H100-SXM-80GB",
    "n_gpus": 1,
    "tp": 1,
    "kv_dtype": "fp8",
    "isl": 128,
    "osl": 128,
    "arrival": "offline",
    "concurrency": None,
    "n_requests": 3000,
    "notes": "all requests queued at once",
}


STATIC = BURST | {"id": "static", "concurrency": 8, "n_requests": 8, "notes": "STATIC batching, one batch"}


POISSON = CLOSED | {
    "id": "poisson",
    "arrival": "poisson",
    "request_rate_rps": 2.0,
    "concurrency": None,
    "n_requests": 200,
}


# llm-d-planner PR #205, commit d3121e0: vLLM 0.19.0, H100 79.19 GiB, utilization 0.95.
START_UP = {
    "id": "a", "engine": "vllm", "version": "0.19.0", "model": "meta-llama/Llama-3.1-8B-Instruct", "gpu": "H100",
    "gpu_mem_gib": "79.19", "n_gpus": "1", "tp": "1", "pp": "1", "dtype": "bfloat16", "weight_quant": "none",
    "kv_cache_dtype": "auto", "block_size": "16", "max_model_len": "8192", "max_num_seqs": "1024",
    "gpu_memory_utilization": "0.95", "max_num_batched_tokens": "8192", "enforce_eager": "False",
    "weights_gib_per_gpu": "14.99", "available_kv_gib": "58.11", "kv_tokens": "476016", "max_concurrency": "58.11",
}  # fmt: skip

STEP = {
    "id": "a", "model": "meta-llama/Meta-Llama-3.1-8B", "gpu": "H100 SXM", "engine": "vllm", "engine_version": "0.14.0",
    "tp": "1", "weight_dtype": "bfloat16", "kv_dtype": "bfloat16", "phase": "decode", "batch": "4", "isl": "1024",
    "ctx": "1024", "step_ms": "7.0",
}  # fmt: skip
