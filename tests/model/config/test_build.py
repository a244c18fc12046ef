"""Shapes from config.json: parameter counts against published totals, mixers, refusals."""

import copy
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from planner.catalog.models import _entries, get_model
from planner.errors import InvalidInput
from planner.model.config.build import model_from_config, model_from_shape
from planner.model.shape import MixerKind
from tests.model.config.cases import JSON, LLAMA, kinds, published_config


# vLLM derives the longest context from YaRN's factor: Qwen2.5's model card tells to add this to its config.json.
@pytest.mark.parametrize(
    ("scaling", "expected"),
    [
        ({"rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768}}, 131_072),
        ({"rope_parameters": {"rope_type": "yarn", "factor": 2, "original_max_position_embeddings": 32_768}}, 65_536),
        ({"rope_scaling": {"type": "linear", "factor": 4.0}}, 131_072),
        ({"rope_scaling": {"type": "dynamic", "factor": 2.0}}, 65_536),
        ({"rope_parameters": {"rope_type": "default", "rope_theta": 1e6}}, 32_768),
        ({"rope_scaling": {"type": "yarn", "factor": "4"}}, 32_768),
        ({"rope_scaling": "yarn"}, 32_768),
    ],
)
def test_context_that_rope_scaling_reaches(scaling: dict[str, object], expected: int) -> None:
    config: dict[str, object] = {
        "model_type": "qwen2", "hidden_size": 2048, "num_hidden_layers": 4, "num_attention_heads": 16,
        "num_key_value_heads": 4, "intermediate_size": 4096, "vocab_size": 1000, "max_position_embeddings": 32_768,
    }  # fmt: skip
    assert model_from_config(config | scaling).max_position_embeddings == expected


# Totals that the hub publishes (safetensors metadata), tower and draft layers included where the file has them.
@pytest.mark.parametrize(
    ("name", "total"),
    [
        ("moonshotai/Kimi-K3", 2_779_931_837_184),
        ("MiniMaxAI/MiniMax-M3", 427_040_140_160),
        ("stepfun-ai/Step-3.5-Flash", 199_384_301_376),
        ("stepfun-ai/Step-3.7-Flash", 201_365_316_160),
        ("nvidia/Llama-3_1-Nemotron-Ultra-253B-v1", 253_401_268_224),
        ("Snowflake/snowflake-arctic-instruct", 478_584_608_768),
        ("Qwen/Qwen3-ASR-1.7B", 2_038_052_480),
        ("Qwen/Qwen3-ASR-0.6B", 782_426_112),
        ("meituan-longcat/LongCat-Flash-Chat", 561_862_880_256),
        ("meituan-longcat/LongCat-Flash-Lite", 69_073_335_552),
    ],
)
def test_published_total_is_met_exactly(name: str, total: int) -> None:
    model = get_model(name)
    assert model.num_parameters + model.vision_parameters + model.mtp_parameters == total
    assert model.estimated_fields == ()


RECENT = (
    "moonshotai/Kimi-K3",
    "MiniMaxAI/MiniMax-M3",
    "stepfun-ai/Step-3.7-Flash",
    "meituan-longcat/LongCat-Flash-Lite",
    "Snowflake/snowflake-arctic-instruct",
    "xai-org/grok-2",
    "Qwen/Qwen3-ASR-0.6B",
)


@settings(deadline=None)
@given(st.sampled_from(RECENT), st.data())
def test_any_value_in_any_field_gives_a_model_or_a_refusal(name: str, data: st.DataObject) -> None:
    config = dict(published_config(name))
    inner = next((key for key in ("text_config", "thinker_config") if key in config), "")
    if inner and data.draw(st.booleans()):
        section = dict(config[inner])  # type: ignore[call-overload]
        section[data.draw(st.sampled_from(sorted(section)))] = data.draw(JSON)
        config[inner] = section
    else:
        config[data.draw(st.sampled_from(sorted(config)))] = data.draw(JSON)
    try:
        model = model_from_config(config)
    except InvalidInput:
        return
    assert model.num_parameters > 0


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
    assert kinds(get_model(name)) == expected


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
    assert kinds(get_model(name)) == expected


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


# Cosines and sines that vLLM computes ahead: one row of the rotary width for each position it may meet.
@pytest.mark.parametrize(
    ("changes", "elements"),
    [
        ({}, 131_072 * 128),
        ({"partial_rotary_factor": 0.5}, 131_072 * 64),
        ({"head_dim": 64}, 131_072 * 64),
        (
            {
                "max_position_embeddings": 32_768,
                "rope_scaling": {"type": "yarn", "factor": 4.0, "original_max_position_embeddings": 32_768},
            },
            4 * 32_768 * 128,
        ),
        ({"max_position_embeddings": 32_768, "rope_scaling": {"type": "linear", "factor": 4.0}}, 4 * 32_768 * 128),
        ({"max_position_embeddings": 32_768, "rope_scaling": {"type": "dynamic", "factor": 2.0}}, 2 * 32_768 * 128),
        ({"mla_use_nope": True}, 0),
    ],
)
def test_rotary_tables_by_hand(changes: dict[str, object], elements: int) -> None:
    assert model_from_config(LLAMA | changes).rope_cache_elements == elements


def test_learned_positions_have_no_rotary_table() -> None:
    model = get_model("openai-community/gpt2")
    assert model.rope_cache_elements == 0
    assert model.extra_embedding_parameters == 1024 * 768


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
            section[last] = copy.deepcopy(data.draw(st.sampled_from(JUNK)))  # a later draw may damage it
        if not config:
            break
    try:
        model = model_from_config(config)
    except InvalidInput:
        return
    assert model.num_parameters > 0
    assert 0 < model.num_active_parameters <= model.num_parameters
