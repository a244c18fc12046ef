"""One start of an engine out of a log."""

from planner.reading.startup import start_up_in
from planner.reading.text import lines_of

TWO_STARTS = """Initializing a V1 LLM engine (v0.9.0) with config: model='a/first', max_seq_len=1024
Available KV cache memory: 1.00 GiB
Initializing a V1 LLM engine (v0.11.0) with config: model='b/second', max_seq_len=2048
Available KV cache memory: 5.00 GiB"""


def start(text: str):
    return start_up_in(lines_of(text))


def test_of_two_starts_the_last_is_read():
    found = start(TWO_STARTS)
    assert found.starts == 2
    assert found.inputs["model"] == "b/second"
    assert found.inputs["max_model_len"] == "2048"
    assert found.measured == {"available_kv_gib": 5.0}


def test_paths_become_names():
    def model(path: str) -> str:
        return start(f"vllm serve {path} --max-num-seqs 4").inputs.get("model", "")

    assert model("/root/.cache/models--Qwen--Qwen3-8B/snapshots/abc") == "Qwen/Qwen3-8B"
    assert model("/data/Qwen3-8B/") == "Qwen3-8B"
    assert model("Qwen/Qwen3-8B") == "Qwen/Qwen3-8B"
    gguf = start("llama-server -m /m/Qwen3-8B-Q4_K_M-00001-of-00002.gguf -c 8192 -np 4").inputs
    assert (gguf["model"], gguf["max_model_len"]) == ("Qwen3-8B-Q4_K_M", "2048")


def test_memory_that_other_programs_hold_is_an_input():
    busy = start("vllm: Free memory on device (60.00/79.20 GiB) on startup")
    assert "60.00/79.20" in busy.inputs["other_flags"]
    idle = start("vllm: Free memory on device (78.50/79.20 GiB) on startup")
    assert "other_flags" not in idle.inputs


def test_data_parallel_attention_and_experts():
    found = start("server_args=ServerArgs(model_path='m/x', tp_size=8, dp_size=8, enable_dp_attention=True)")
    assert found.inputs["dp_ep"] == "DP8 attention"


def test_how_it_ended():
    assert start("vllm: No available memory for the cache blocks").outcome == "refused"
    assert start("vllm\ntorch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1 GiB").outcome == "out of memory"
    assert start("vllm\nLoading model weights took 5.0 GB").outcome == ""
    assert start("just text") is None


# vLLM from 0.27 on (v1/worker/gpu_worker.py): the peak is printed with the estimate of the CUDA graphs, and weights
# together with what is outside torch. Lines of a GB300 decode worker that NVIDIA's srt-slurm tests read so.
def test_a_peak_that_holds_the_estimate_of_the_graphs():
    found = start("""Initializing a V1 LLM engine (v0.28.0) with config: model='a/b', max_seq_len=10240
Model loading took 168.89 GiB memory and 232.8 s
CUDA graph pool memory: 8.57 GiB (actual), 33.06 GiB (estimated), difference: 24.49 GiB (285.9%).
Free memory on device (274.27/276.62 GiB) on startup. Desired GPU memory utilization is (0.92, 254.49 GiB). Actual \
usage is 171.25 GiB for consumed memory (weights + non-torch), 36.74 GiB for peak activation, and 8.57 GiB for \
CUDAGraph memory.""").measured
    assert round(found["activation_peak_gib"], 2) == 3.68
    assert round(found["non_torch_gib"], 2) == 2.36
    assert (found["cuda_graph_gib"], found["cuda_graph_estimate_gib"]) == (8.57, 33.06)


def test_awq_that_the_user_asked_for_is_a_flag():
    config = "Initializing a V1 LLM engine (v0.8.5) with config: model='m/x-AWQ', quantization={}, max_seq_len=1024"
    assert start(config.format("awq")).inputs["other_flags"] == "--quantization awq"
    assert start("vllm serve m/x-AWQ --quantization awq").inputs["weight_quant"] == "awq"
    assert "other_flags" not in start(config.format("awq_marlin")).inputs


# sglang/srt/mem_cache/memory_pool.py prints one size of a latent cache, and two of keys and values apart
def test_a_latent_cache_of_sglang_is_one_size():
    latent = start("KV Cache is allocated. #tokens: 2454421, KV size: 160.63 GB\nsglang").measured
    assert latent == {"available_kv_gib": 160.63, "kv_tokens": 2454421.0}
    apart = start("KV Cache is allocated. #tokens: 399740, K size: 1.52 GB, V size: 1.52 GB").measured
    assert apart == {"available_kv_gib": 3.04, "kv_tokens": 399740.0}


# llama-model.cpp and llama-kv-cache.cpp name a buffer by its backend: MTL0 on a Mac, HTP0 on a Hexagon
def test_buffers_of_other_backends_of_llama_cpp_count():
    mac = start(
        "load_tensors:  MTL0_Mapped model buffer size =  2048.00 MiB\n"
        "load_tensors:   CPU_Mapped model buffer size =   304.28 MiB\n"
        "llama_kv_cache:       MTL0 KV buffer size =   512.00 MiB"
    ).measured
    assert mac == {"weights_gib_per_gpu": 2.0, "available_kv_gib": 0.5}
    two = start(
        "load_tensors:  HTP1-REPACK model buffer size =  1575.00 MiB\n"
        "load_tensors:  HTP0-REPACK model buffer size =  2025.00 MiB"
    ).measured
    assert two["weights_gib_per_gpu"] == 3600 / 1024
