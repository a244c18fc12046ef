"""The workspace of sparse latent attention and the format of its cache, against vLLM's source."""

import pytest

from planner.catalog.gpus import get_gpu
from planner.catalog.models import get_model
from planner.inputs.engine import EngineSettings
from planner.memory.edition import edition_of
from planner.memory.sparse_workspace import stored_type
from planner.units import GIB
from tests.memory.cases import plan

GLM, V32 = "zai-org/GLM-5.2", "deepseek-ai/DeepSeek-V3.2"
STEP = 512  # so few tokens and sequences that neither experts nor the sampler need as much


def peak(model: str, gpu: str, length: int, version: str, kv: str = "auto", **engine: object) -> float:
    small = {"max_num_batched_tokens": STEP, "max_num_seqs": 8} | engine
    made = plan(model, get_gpu(gpu), tp=8, length=length, version=version, kv=kv, **small)
    return made.activation_bytes


# flashmla_sparse.py get_prefill_workspace_size: 5 × max_model_len × 576 × 2 bytes beside the queries of a step, with an
# fp8 cache; indexer.py get_max_prefill_buffer_size: 40 × max_model_len × 132 bytes otherwise. From 0.32 on the factor 5
# is 2 above 262,144 tokens (config/vllm.py).
@pytest.mark.parametrize(
    ("kv", "version", "per_token"),
    [
        ("fp8", "0.26.0", 5 * 576 * 2),
        ("auto", "0.26.0", 40 * 132),
        ("fp8", "0.33.0", 2 * 576 * 2),
        ("auto", "0.33.0", 16 * 132),
    ],
)
def test_buffers_for_gathered_contexts(kv: str, version: str, per_token: int) -> None:
    longer = peak(GLM, "H200 SXM", 1_000_000, version, kv) - peak(GLM, "H200 SXM", 600_000, version, kv)
    assert longer == pytest.approx(400_000 * per_token)


# Experts and sparse attention use one buffer in turn (workspace.py): what experts need already costs nothing more.
def test_experts_and_sparse_attention_share_a_buffer() -> None:
    def grown(length: int) -> float:
        return peak(V32, "H200 SXM", length, "0.26.0", max_num_batched_tokens=8192, max_num_seqs=8)

    assert grown(131_072) == grown(8192)
    assert grown(163_840) <= peak(V32, "H200 SXM", 163_840, "0.26.0") + 5 * GIB


# rocm_aiter_mla_sparse.py: fp32 scores of every token of a step against max_model_len, from 0.30 on of as many rows as
# sequences; DeepSeek-V4 scores one entry for four tokens (deepseek_v4/attention.py).
@pytest.mark.parametrize(
    ("model", "version", "rows", "share"),
    [(GLM, "0.26.0", 4096, 1), (GLM, "0.33.0", 64, 1), ("deepseek-ai/DeepSeek-V4-Pro", "0.26.0", 4096, 4)],
)
def test_scores_of_a_decode_step_on_amd(model: str, version: str, rows: int, share: int) -> None:
    def of(length: int) -> float:
        return peak(model, "MI300X", length, version, "fp8", max_num_batched_tokens=4096, max_num_seqs=64)

    scores = 4 * rows * 400_000 / share
    gathered = (2 if version == "0.33.0" else 5) * 8 * 132 * 400_000 / share
    assert of(1_000_000) - of(600_000) == pytest.approx(max(scores, gathered))


# platforms/cuda.py: FlashMLA packs fp8 latents into 656 bytes, FlashInfer (data-centre Blackwell) and AMD's kernels do
# not; kernels for workstation Blackwell take a packed cache only.
@pytest.mark.parametrize(
    ("gpu", "version", "kv", "stored"),
    [
        ("H200 SXM", "0.26.0", "fp8", "fp8_ds_mla"),
        ("H200 SXM", "0.26.0", "auto", "auto"),
        ("B200", "0.26.0", "fp8", "fp8"),
        ("B200", "0.12.0", "fp8", "fp8_ds_mla"),
        ("MI355X", "0.28.0", "fp8", "fp8"),
        ("RTX PRO 6000 Blackwell Workstation", "0.26.0", "auto", "fp8_ds_mla"),
        ("RTX PRO 6000 Blackwell Workstation", "0.23.0", "auto", "auto"),
    ],
)
def test_how_an_fp8_cache_is_stored(gpu: str, version: str, kv: str, stored: str) -> None:
    mixers = tuple(layer.mixer for layer, _ in get_model(GLM).layer_counts())
    edition = edition_of(EngineSettings(version=version))
    assert stored_type(mixers, get_gpu(gpu), edition, kv) == stored
    assert stored_type((), get_gpu(gpu), edition, kv) == kv


# ROCm/ATOM's recipe for GLM-5.3 on four MI355X states 47,700 bytes per token and rank.
def test_the_pool_of_an_fp8_cache_on_amd() -> None:
    made = plan("zai-org/GLM-5.3", get_gpu("MI355X"), tp=4, version="0.28.0", kv="fp8", block_size=64)
    assert made.kv_bytes_per_token == 47_700 == 78 * 576 + 21 * 132
