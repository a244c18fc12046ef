"""Shapes from config.json: parameter counts against published totals, mixers, refusals."""

import copy
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.catalog.models import _entries, get_model
from planner.errors import InvalidInput
from planner.model.config.build import model_from_config, model_from_shape
from planner.model.shape import MixerKind, Shard, TensorGroup

LLAMA = {
    "model_type": "llama",
    "hidden_size": 4096,
    "intermediate_size": 14336,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "tie_word_embeddings": False,
    "torch_dtype": "bfloat16",
}


def kinds(name: str) -> dict[MixerKind, int]:
    counted: dict[MixerKind, int] = {}
    for layer, count in get_model(name).layer_counts():
        counted[layer.mixer.kind] = counted.get(layer.mixer.kind, 0) + count
    return counted


# Hub totals (safetensors metadata) of checkpoints that store nothing twice.
@pytest.mark.parametrize(
    ("name", "total"),
    [
        ("meta-llama/Llama-3.1-8B-Instruct", 8_030_261_248),
        ("meta-llama/Llama-3.1-405B-Instruct", 405_853_388_800),
        ("mistralai/Mixtral-8x22B-Instruct-v0.1", 140_630_071_296),
        ("Qwen/Qwen2.5-7B-Instruct", 7_615_616_512),
        ("Qwen/Qwen3-235B-A22B", 235_093_634_560),
        ("google/gemma-2-27b-it", 27_227_128_320),
        ("microsoft/phi-2", 2_779_683_840),
        ("microsoft/Phi-3.5-MoE-instruct", 41_873_153_344),
        ("deepseek-ai/DeepSeek-V2-Lite", 15_706_484_224),
        ("openai/gpt-oss-120b", 116_829_156_672),
        ("MiniMaxAI/MiniMax-M2", 228_689_764_864),
        ("nvidia/Nemotron-H-56B-Base-8K", 56_324_350_464),
        ("nvidia/Llama-3_3-Nemotron-Super-49B-v1", 49_867_145_216),
        ("allenai/OLMo-2-1124-13B-Instruct", 13_716_198_400),
        ("CohereLabs/c4ai-command-r-v01", 34_980_831_232),
    ],
)
def test_parameter_count_is_the_published_one(name: str, total: int) -> None:
    assert get_model(name).num_parameters == total


# Totals that include a vision tower, draft layers or both.
@pytest.mark.parametrize(
    ("name", "total"),
    [
        ("Qwen/Qwen3.5-397B-A17B", 403_397_928_944),
        ("Qwen/Qwen3-Next-80B-A3B-Instruct", 81_324_862_720),
        ("google/gemma-3-27b-it", 27_432_406_640),
        ("google/gemma-4-26B-A4B-it", 25_805_936_206),
        ("meta-llama/Llama-4-Maverick-17B-128E-Instruct", 401_583_781_376),
        ("deepseek-ai/DeepSeek-R1", 684_489_845_504),
        ("zai-org/GLM-5", 753_864_139_008),
        ("zai-org/GLM-5.2", 753_329_940_480),
        ("Qwen/Qwen2.5-VL-7B-Instruct", 8_292_166_656),
        ("mistralai/Mistral-Small-3.1-24B-Instruct-2503", 24_011_361_280),
    ],
)
def test_tower_and_draft_layers_complete_the_published_total(name: str, total: int) -> None:
    model = get_model(name)
    assert model.num_parameters + model.vision_parameters + model.mtp_parameters == total


@pytest.mark.parametrize(
    ("name", "active"),
    [("openai/gpt-oss-20b", 4_187_440_704), ("deepseek-ai/DeepSeek-V3", 37_552_297_472)],
)
def test_active_parameters_leave_out_idle_experts(name: str, active: int) -> None:
    assert get_model(name).num_active_parameters == active


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("google/gemma-3-27b-it", {MixerKind.FULL: 10, MixerKind.SLIDING: 52}),
        ("openai/gpt-oss-20b", {MixerKind.FULL: 12, MixerKind.SLIDING: 12}),
        ("meta-llama/Llama-4-Scout-17B-16E-Instruct", {MixerKind.FULL: 12, MixerKind.CHUNKED: 36}),
        ("Qwen/Qwen3.5-27B", {MixerKind.FULL: 16, MixerKind.STATE: 48}),
        ("deepseek-ai/DeepSeek-V3", {MixerKind.MLA: 61}),
        ("moonshotai/Kimi-Linear-48B-A3B-Instruct", {MixerKind.MLA: 7, MixerKind.STATE: 20}),
        ("Qwen/Qwen2.5-7B-Instruct", {MixerKind.FULL: 28}),
        ("mistralai/Mistral-7B-Instruct-v0.1", {MixerKind.SLIDING: 32}),
    ],
)
def test_layers_have_the_published_mixers(name: str, expected: dict[MixerKind, int]) -> None:
    assert kinds(name) == expected


def test_gated_delta_net_state_is_fp32_matrix_and_convolution_tail() -> None:
    state = next(x.mixer for x in get_model("Qwen/Qwen3.5-27B").layer_kinds if x.mixer.kind is MixerKind.STATE)
    assert state.state_elements == 48 * 128 * 128
    assert state.conv_elements == (2 * 16 * 128 + 48 * 128) * 3
    assert state.state_element_bytes == 4


def test_matrices_carry_their_shard_and_group() -> None:
    layer = model_from_config(LLAMA).layer_kinds[0]
    shards = {linear.name: (linear.shard, linear.group) for linear in layer.linears}
    assert shards["q_proj"] == (Shard.COLUMN, TensorGroup.ATTENTION)
    assert shards["k_proj"][0] is Shard.KV_COLUMN
    assert shards["down_proj"] == (Shard.ROW, TensorGroup.MLP)


def test_figures_by_hand_agree_with_the_config() -> None:
    by_hand = model_from_shape(
        num_layers=32,
        hidden_size=4096,
        num_attention_heads=32,
        num_kv_heads=8,
        head_dim=128,
        intermediate_size=14336,
        vocab_size=128256,
    )
    assert by_hand.num_parameters == 8_030_261_248
    assert by_hand.num_layers == 32


def test_experts_by_hand_agree_with_mixtral() -> None:
    by_hand = model_from_shape(
        num_layers=32,
        hidden_size=4096,
        num_attention_heads=32,
        num_kv_heads=8,
        head_dim=128,
        intermediate_size=14336,
        vocab_size=32000,
        num_experts=8,
        experts_per_token=2,
    )
    assert by_hand.num_parameters == 46_702_792_704
    assert by_hand.num_active_parameters == 12_879_925_248


def test_text_and_dict_are_the_same_model() -> None:
    assert model_from_config(json.dumps(LLAMA), "x") == model_from_config(LLAMA, "x")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        ({"hidden_size": None}, "hidden_size"),
        ({"hidden_size": -1}, "hidden_size"),
        ({"hidden_size": 10**40}, "hidden_size"),
        ({"hidden_size": float("nan")}, "hidden_size"),
        ({"hidden_size": "4096"}, "hidden_size"),
        ({"hidden_size": True}, "hidden_size"),
        ({"num_key_value_heads": 5}, "num_key_value_heads"),
        ({"num_attention_heads": 33}, "num_attention_heads"),
        ({"layer_types": ["full_attention"] * 3}, "layer_types"),
        ({"layer_types": ["telepathy"] * 32}, "layer_types"),
        ({"layer_types": ["sliding_attention"] * 32}, "sliding_window"),
        ({"vocab_size": 0}, "vocab_size"),
        ({"num_hidden_layers": 10**6}, "num_hidden_layers"),
        ({"intermediate_size": None}, "intermediate_size"),
        ({"num_experts": 4, "num_experts_per_tok": 8}, "experts_per_token"),
        ({"quantization_config": {"quant_method": "wizardry"}}, "quant_method"),
        ({"quantization_config": 3}, "quantization_config"),
        ({"text_config": [1]}, "text_config"),
        ({"model_type": ["llama"]}, "model_type"),
        ({"model_type": "unheard_of", "kv_lora_rank": 512}, "model_type"),
        ({"model_type": "minimax", "attn_type_list": [0, 1]}, "attn_type_list"),
        ({"model_type": "lfm2", "layer_types": ["conv"]}, "layer_types"),
        ({"is_encoder_decoder": True}, "model_type"),
    ],
)
def test_what_cannot_be_sized_is_refused_by_name(change: dict[str, object], field: str) -> None:
    with pytest.raises(InvalidInput) as caught:
        model_from_config({**LLAMA, **change})
    assert caught.value.field == field


# Hub totals: Whisper large-v3, BART large, Flan-T5 XL.
@pytest.mark.parametrize(
    ("config", "total"),
    [
        (
            {"model_type": "whisper", "d_model": 1280, "decoder_layers": 32, "encoder_layers": 32, "vocab_size": 51_866,
             "decoder_attention_heads": 20, "decoder_ffn_dim": 5120, "num_mel_bins": 128, "max_source_positions": 1500,
             "max_target_positions": 448},
            1_543_490_560,
        ),
        (
            {"model_type": "bart", "d_model": 1024, "decoder_layers": 12, "encoder_layers": 12, "vocab_size": 50_265,
             "decoder_attention_heads": 16, "decoder_ffn_dim": 4096, "max_position_embeddings": 1024},
            406_291_456,
        ),
        (
            {"model_type": "t5", "d_model": 2048, "d_kv": 64, "d_ff": 5120, "num_heads": 32, "num_layers": 24,
             "num_decoder_layers": 24, "feed_forward_proj": "gated-gelu", "vocab_size": 32_128,
             "tie_word_embeddings": False},
            2_849_757_184,
        ),
    ],
    ids=["whisper", "bart", "t5"],
)  # fmt: skip
def test_encoder_decoder_models_are_counted(config: dict[str, object], total: int) -> None:
    model = model_from_config(config)
    assert model.num_parameters + model.vision_parameters == total


def test_unknown_model_type_is_estimated_and_says_so() -> None:
    model = model_from_config({**LLAMA, "model_type": "unheard_of"})
    assert model.num_parameters == 8_030_261_248
    assert any("unheard_of" in text for text in model.estimated_fields)


def test_known_config_estimates_nothing() -> None:
    assert model_from_config(LLAMA).estimated_fields == ()


@pytest.mark.parametrize(
    "text",
    ["", "<html></html>", "[]", "null", "NaN", '{"hidden_size": NaN}', "x" * 3_000_000, '{"a":' * 50_000, "[" * 100_000,
     '{"hidden_size": ' + "9" * 6000 + "}"],
    ids=["empty", "html", "list", "null", "nan", "nan field", "3 MB", "deep object", "deep list", "digits"],
)  # fmt: skip
def test_hostile_text_is_refused(text: str) -> None:
    with pytest.raises(InvalidInput):
        model_from_config(text)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**12), 10**12) | st.floats(allow_nan=True) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=6), inner, max_size=3),
    max_leaves=6,
)
FIELDS = [
    *LLAMA,
    *(
        "quantization_config",
        "layer_types",
        "head_dim",
        "sliding_window",
        "vision_config",
        "rope_scaling",
        "text_config",
    ),
    *("num_experts", "moe_layer_freq", "num_nextn_predict_layers", "partial_rotary_factor", "sliding_window_pattern"),
]


@given(st.dictionaries(st.sampled_from(FIELDS), JSON, max_size=4))
def test_any_value_gives_a_model_or_a_refusal(change: dict[str, object]) -> None:
    try:
        model = model_from_config({**LLAMA, **change})
    except InvalidInput:
        return
    assert model.num_parameters > 0


# Hub totals of families with states, short convolutions, cross-attention or embeddings of their own per layer.
@pytest.mark.parametrize(
    ("name", "total", "expected"),
    [
        ("ibm-granite/granite-4.0-h-small", 32_207_337_984, {MixerKind.FULL: 4, MixerKind.STATE: 36}),
        ("ibm-granite/granite-4.0-h-tiny", 6_939_037_248, {MixerKind.FULL: 4, MixerKind.STATE: 36}),
        ("ai21labs/AI21-Jamba-Mini-1.6", 51_570_323_328, {MixerKind.FULL: 4, MixerKind.STATE: 28}),
        ("ai21labs/AI21-Jamba-Large-1.6", 398_555_145_696, {MixerKind.FULL: 9, MixerKind.STATE: 63}),
        ("state-spaces/mamba-2.8b-hf", 2_768_345_600, {MixerKind.STATE: 64}),
        ("tiiuae/falcon-mamba-7b", 7_272_665_088, {MixerKind.STATE: 64}),
        ("LiquidAI/LFM2-1.2B", 1_170_340_608, {MixerKind.FULL: 6, MixerKind.STATE: 10}),
        ("LiquidAI/LFM2-24B-A2B", 23_843_661_440, {MixerKind.FULL: 10, MixerKind.STATE: 30}),
        ("MiniMaxAI/MiniMax-M1-40k", 456_089_655_296, {MixerKind.FULL: 10, MixerKind.STATE: 70}),
        ("tiiuae/Falcon-H1-1.5B-Instruct", 1_554_863_488, {MixerKind.FULL: 24, MixerKind.STATE: 24}),
        ("meta-llama/Llama-3.2-90B-Vision-Instruct", 88_593_355_323, {MixerKind.FULL: 80, MixerKind.STATE: 20}),
        ("google/gemma-3n-E4B-it", 7_849_978_192, {MixerKind.FULL: 7, MixerKind.SLIDING: 28}),
        ("google/gemma-4-E2B-it", 5_123_178_051, {MixerKind.FULL: 7, MixerKind.SLIDING: 28}),
        ("Qwen/Qwen2-VL-2B-Instruct", 2_208_985_600, {MixerKind.FULL: 28}),
        ("arcee-ai/Trinity-Mini", 26_123_974_400, {MixerKind.FULL: 8, MixerKind.SLIDING: 24}),
    ],
)
def test_further_families(name: str, total: int, expected: dict[MixerKind, int]) -> None:
    model = get_model(name)
    assert model.num_parameters + model.vision_parameters == total
    assert kinds(name) == expected


@pytest.mark.parametrize(
    ("name", "total"),
    [
        ("tencent/Hunyuan-A13B-Instruct", 80_393_183_232),
        ("baidu/ERNIE-4.5-300B-A47B-Base-PT", 299_484_163_264),
        ("rednote-hilab/dots.llm1.inst", 142_774_381_696),
        ("inclusionAI/Ling-1T", 999_705_328_640),
        ("arcee-ai/AFM-4.5B", 4_619_189_760),
        ("Qwen/Qwen-72B", 72_287_920_128),
        ("utter-project/EuroLLM-22B-Instruct-2512", 22_637_328_384),
    ],
)
def test_totals_of_more_families(name: str, total: int) -> None:
    assert get_model(name).num_parameters == total


def test_last_layers_of_gemma_3n_reuse_the_cache_of_others() -> None:
    layers = get_model("google/gemma-3n-E4B-it").layers
    assert [layer.mixer.reuses_kv_of_another_layer for layer in layers] == [False] * 20 + [True] * 15


def test_cross_attention_caches_one_image() -> None:
    layers = get_model("meta-llama/Llama-3.2-11B-Vision-Instruct").layers
    assert [index for index, layer in enumerate(layers) if layer.mixer.window_tokens] == [3, 8, 13, 18, 23, 28, 33, 38]
    assert layers[3].mixer.window_tokens == 6404


# transformers: Olmo3Config and Gemma3TextConfig without layer_types.
@pytest.mark.parametrize(("model_type", "every"), [("olmo3", 4), ("gemma3_text", 6)])
def test_windows_that_a_config_leaves_to_its_class(model_type: str, every: int) -> None:
    config = {"model_type": model_type, "num_hidden_layers": 12, "hidden_size": 256, "num_attention_heads": 4,
              "intermediate_size": 512, "vocab_size": 1000, "max_position_embeddings": 65_536}  # fmt: skip
    mixers = [layer.mixer for layer in model_from_config(config).layers]
    assert [mixer.kind is MixerKind.FULL for mixer in mixers] == [(i + 1) % every == 0 for i in range(12)]
    assert {mixer.window_tokens for mixer in mixers if mixer.kind is MixerKind.SLIDING} == {4096}


# What a config leaves out is noted with what was taken for it; what only looks left out is not.
@pytest.mark.parametrize(
    ("change", "noted"),
    [
        ({"num_key_value_heads": None}, "num_key_value_heads"),
        ({"num_experts_per_tok": 2}, "num_experts"),
        ({"model_type": "qwen3_moe", "num_experts": 8, "num_experts_per_tok": 2}, "moe_intermediate_size"),
        ({"max_position_embeddings": None}, "max_position_embeddings"),
        ({"model_type": "unheard_of"}, "model_type"),
        ({"model_type": None}, "model_type"),
        ({"torch_dtype": "int4"}, "torch_dtype"),
    ],
)
def test_assumptions_are_noted(change: dict[str, object], noted: str) -> None:
    notes = model_from_config({**LLAMA, **change}).estimated_fields
    assert [text for text in notes if text.startswith(noted)]


def test_mixtral_states_its_experts_as_intermediate_size() -> None:
    config = {**LLAMA, "model_type": "mixtral", "num_local_experts": 8, "num_experts_per_tok": 2}
    assert model_from_config(config).estimated_fields == ()


JUNK = (None, 0, -1, 1, 7, 1.5, True, "", "full_attention", [], [1], [0] * 5, ["full_attention"], {}, {"a": 1}, 10**12)
DAMAGED = (
    *("meta-llama/Llama-4-Scout-17B-16E-Instruct", "google/gemma-4-E4B-it", "deepseek-ai/DeepSeek-V4-Flash"),
    *("Qwen/Qwen3.8-Flash-Next", "thinkingmachines/Inkling", "poolside/Laguna-XS-2.1", "inclusionAI/Ling-3.0-flash"),
    *("moonshotai/Kimi-K3", "MiniMaxAI/MiniMax-M3-MXFP8", "XiaomiMiMo/MiMo-V2.5", "openai/whisper-small"),
    *("nvidia/Llama-3_3-Nemotron-Super-49B-v1", "baidu/ERNIE-4.5-VL-28B-A3B-PT", "tiiuae/Falcon-H1-7B-Instruct"),
)


def places(config: dict[str, object], above: tuple[str, ...] = ()) -> list[tuple[str, ...]]:
    found = []
    for key, value in config.items():
        found.append((*above, key))
        if isinstance(value, dict):
            found += places(value, (*above, key))
    return found


# A published config with one to three fields dropped or replaced is a model or a refusal, never another error.
@given(st.data())
def test_damaged_configs_give_a_model_or_a_refusal(data: st.DataObject) -> None:
    config = copy.deepcopy(_entries()[data.draw(st.sampled_from(DAMAGED))]["config"])
    for _ in range(data.draw(st.integers(1, 3))):
        *path, last = data.draw(st.sampled_from(places(config)))
        section = config
        for key in path:
            section = section[key]
        if data.draw(st.booleans()):
            del section[last]
        else:
            section[last] = data.draw(st.sampled_from(JUNK))
        if not config:
            break
    try:
        model = model_from_config(config)
    except InvalidInput:
        return
    assert model.num_parameters > 0
    assert 0 < model.num_active_parameters <= model.num_parameters
