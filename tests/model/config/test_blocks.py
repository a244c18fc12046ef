"""Matrices of each building block."""

from planner.model.config import blocks
from planner.model.config.build import model_from_config
from planner.model.shape import Linear, Shard, TensorGroup
from tests.model.config.cases import LLAMA


def test_matrices_carry_their_shard_and_group() -> None:
    layer = model_from_config(LLAMA).layer_kinds[0]
    shards = {linear.name: (linear.shard, linear.group) for linear in layer.linears}
    assert shards["q_proj"] == (Shard.COLUMN, TensorGroup.ATTENTION)
    assert shards["k_proj"][0] is Shard.KV_COLUMN
    assert shards["down_proj"] == (Shard.ROW, TensorGroup.MLP)


def parameters(linears: tuple[Linear, ...]) -> dict[str, int]:
    return {linear.name: linear.num_parameters for linear in linears}


# Llama 3 8B: 4,096 wide, 32 heads of 128, 8 KV heads.
def test_grouped_query_attention_by_hand() -> None:
    plain = parameters(blocks.gqa_linears(4096, 32, 8, 128))
    assert plain == {"q_proj": 4096**2, "k_proj": 4096 * 1024, "v_proj": 4096 * 1024, "o_proj": 4096**2}
    biased = parameters(blocks.gqa_linears(4096, 32, 8, 128, qkv_bias=True))
    assert sum(biased.values()) - sum(plain.values()) == 4096 + 2 * 1024
    out = parameters(blocks.gqa_linears(4096, 32, 8, 128, out_bias=True))
    assert sum(out.values()) - sum(plain.values()) == 4096
    gated = parameters(blocks.gqa_linears(4096, 32, 8, 128, output_gate=True))
    assert gated == plain | {"q_proj": 2 * 4096**2}
    assert "v_proj" not in parameters(blocks.gqa_linears(4096, 32, 8, 128, key_is_value=True))


# DeepSeek-V3: 128 heads of 128 + 64, latents of 1,536 and 512; V2-Lite has no query latent.
def test_latent_attention_by_hand() -> None:
    made = blocks.mla_linears(7168, 128, q_lora=1536, kv_lora=512, nope=128, rope=64, value=128)
    assert parameters(made) == {
        "q_a_proj": 7168 * 1536,
        "q_b_proj": 1536 * 128 * 192,
        "kv_a_proj": 7168 * (512 + 64),
        "kv_b_proj": 512 * 128 * 256,
        "o_proj": 128 * 128 * 7168,
    }
    shards = {linear.name: linear.shard for linear in made}
    assert shards["q_a_proj"] is shards["kv_a_proj"] is Shard.REPLICATED
    assert (shards["kv_b_proj"], shards["o_proj"]) == (Shard.COLUMN, Shard.ROW)
    lite = parameters(blocks.mla_linears(2048, 16, q_lora=0, kv_lora=512, nope=128, rope=64, value=128))
    assert lite["q_proj"] == 2048 * 16 * 192 and "q_a_proj" not in lite


def test_feed_forward_by_hand() -> None:
    assert parameters(blocks.mlp_linears(8, 20)) == {"gate_up_proj": 8 * 40, "down_proj": 20 * 8}
    assert parameters(blocks.mlp_linears(8, 20, gated=False, bias=True)) == {"up_proj": 20 * 9, "down_proj": 8 * 21}
    experts = blocks.mlp_linears(8, 20, group=TensorGroup.EXPERT, count=4)
    assert parameters(experts) == {"gate_up_proj": 4 * 8 * 40, "down_proj": 4 * 20 * 8}
    assert {linear.shard for linear in experts} == {Shard.EXPERT}
    assert [linear.shard for linear in blocks.mlp_linears(8, 20)] == [Shard.COLUMN, Shard.ROW]


# Qwen3-Next: 16 key heads and 32 value heads of 128; q, k, v and gate, then two scalars per value head.
def test_gated_delta_net_by_hand() -> None:
    made = blocks.delta_net_linears(2048, 16 * 128, 32 * 128, 32)
    assert parameters(made) == {
        "in_proj_qkvz": 2048 * (2 * 2048 + 2 * 4096),
        "in_proj_ba": 2048 * 64,
        "out_proj": 4096 * 2048,
    }


# Mamba-2: gate and input, B and C per group, a step per head.
def test_mamba_2_by_hand() -> None:
    made = blocks.mamba_linears(4096, 8192, 8, 128, 128)
    assert parameters(made) == {"in_proj": 4096 * (2 * 8192 + 2 * 8 * 128 + 128), "out_proj": 8192 * 4096}


def test_what_schemes_leave_in_16_bits() -> None:
    assert not blocks.router_linear(2048, 64).quantizable
    assert blocks.router_linear(2048, 64, bias=True).num_parameters == 64 * 2049
    kept = {linear.name for linear in blocks.indexer_linears(7168, 1536, 64, 128) if not linear.quantizable}
    assert kept == {"indexer_weights"}
    whole = blocks.replicated_linear("x", TensorGroup.MLP, 8, 16)
    assert (whole.shard, whole.num_parameters, whole.quantizable) == (Shard.REPLICATED, 128, True)
