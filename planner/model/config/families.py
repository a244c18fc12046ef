"""Traits of the decoder families, as data: biases, norms, ties, windows, experts, draft layers.

An entry holds only what differs from a Llama-like decoder (two RMSNorms, no biases, gated MLP, untied head). Sources:
the modelling files of each family in Hugging Face transformers; parameter counts agree with the totals that the hub
publishes (tests/catalog/test_models.py).
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True, kw_only=True)
class Family:
    """Traits of one `model_type`. None = as the config states (`attention_bias`, `mlp_bias`)."""

    attention: str = "gqa"  # gqa, mla
    qkv_bias: bool | None = None
    out_bias: bool | None = None
    output_gate: bool = False
    qk_norm: str = ""  # "", head (one vector per head width), full (over all heads), config (use_qk_norm)
    norms: int = 2
    norm_bias: bool = False
    gated: bool = True
    mlp_bias: bool | None = None
    tied: bool = False  # default of the class where the config lacks tie_word_embeddings
    lm_head_bias: bool = False
    position_offset: int | None = None  # learned positions: max_position_embeddings + offset rows
    routing_bias: bool = False  # one correction term per expert
    router_bias: bool = False
    expert_bias: bool = False
    sinks: bool = False  # one attention sink per head
    shared_gate: bool = False
    window_pattern: int = 0  # every n-th layer has full attention, the others a window; 0 = all alike
    window_default: int = 0
    always_slides: bool = False  # where the config states a sliding_window, every layer has it
    state: str = ""  # what `linear_attention` layers are: gated_delta_net, kda
    embedding_norm: bool = False  # a LayerNorm right after the embedding
    halved_mlp: bool = False  # the config states the width of gate and up together
    own_embeddings: bool = False  # each layer has an embedding of its own (hidden_size_per_layer_input)
    residual_mlp: str = ""  # a dense MLP beside the experts: hidden (as wide as the model, own norm), intermediate
    laurel: bool = False  # low-rank residual and alternating updates (Gemma 3n)
    draft_copies: int = 0  # copies of embedding and head in the checkpoint's draft layer
    draft_uses_copies: bool = False  # engines load these copies instead of sharing the model's own
    draft_keeps_window: bool = False  # the draft layer attends within a window, although other layers do not
    window_pool_engines: tuple[str, ...] = ()  # engines that give this architecture's windows a pool of their own


LLAMA = Family()
SGLANG = ("sglang",)  # model_config.py is_hybrid_swa_model

FAMILIES: dict[str, Family] = {
    "llama": LLAMA,
    "mistral": Family(always_slides=True),
    "ministral3": Family(always_slides=True),
    "mixtral": Family(always_slides=True),
    "phi3": Family(always_slides=True),
    "eagle3": LLAMA,
    "yi": LLAMA,
    "internlm2": LLAMA,
    "baichuan": LLAMA,
    "stablelm": Family(norm_bias=True),
    "starcoder2": Family(norm_bias=True, qkv_bias=True, out_bias=True, mlp_bias=True, gated=False, tied=True),
    "granite": LLAMA,
    "granitemoe": LLAMA,
    "mimo": Family(qkv_bias=True, out_bias=False),
    "qwen2": Family(qkv_bias=True, out_bias=False),
    "qwen2_moe": Family(qkv_bias=True, out_bias=False, shared_gate=True),
    "qwen3": Family(qk_norm="head"),
    "qwen3_moe": Family(qk_norm="head"),
    "mellum": Family(qk_norm="head"),
    "qwen3_asr": Family(qk_norm="head", tied=True),
    "qwen3_next": Family(qk_norm="head", output_gate=True, shared_gate=True, state="gated_delta_net"),
    "qwen3_5_text": Family(qk_norm="head", output_gate=True, state="gated_delta_net"),
    "qwen3_5_moe_text": Family(qk_norm="head", output_gate=True, shared_gate=True, state="gated_delta_net"),
    "olmo": LLAMA,
    "olmo2": Family(qk_norm="full"),
    "olmo3": Family(qk_norm="full", window_pattern=4, window_default=4096),
    "olmoe": Family(qk_norm="full"),
    "seed_oss": Family(qkv_bias=True, out_bias=False),
    "gemma": Family(tied=True),
    "gemma2": Family(tied=True, norms=4, window_pattern=2, window_default=4096),
    "gemma3_text": Family(tied=True, norms=4, qk_norm="head", window_pattern=6, window_default=4096),
    "gemma3n_text": Family(
        tied=True,
        norms=4,
        qk_norm="head",
        window_pattern=5,
        window_default=512,
        own_embeddings=True,
        laurel=True,
    ),
    "gemma4_text": Family(
        window_pool_engines=SGLANG,
        tied=True,
        norms=4,
        qk_norm="head",
        window_pattern=6,
        window_default=1024,
        own_embeddings=True,
    ),
    "cohere": Family(tied=True, norms=1, qk_norm="config"),
    "cohere2": Family(tied=True, norms=1, window_pattern=4, window_default=4096),
    "exaone4": Family(qk_norm="head", window_pattern=4, window_default=4096),
    "glm4": Family(norms=4),
    "glm4_moe": Family(out_bias=False, qk_norm="config", routing_bias=True),
    "minimax_m2": Family(qk_norm="full", routing_bias=True),
    "afmoe": Family(
        qk_norm="head", output_gate=True, norms=4, routing_bias=True, window_pattern=4, window_default=2048
    ),
    "apertus": Family(qk_norm="head", gated=False),
    "arcee": Family(gated=False),
    "bailing_moe": Family(qk_norm="config", routing_bias=True),
    "dots1": Family(qk_norm="head", routing_bias=True),
    "ernie4_5": Family(tied=True),
    "ernie4_5_moe": Family(tied=True, routing_bias=True),
    "exaone_moe": Family(qk_norm="head", routing_bias=True, window_pattern=4, window_default=128),
    "glm": Family(qkv_bias=True, out_bias=False),
    "hunyuan_v1_dense": Family(qk_norm="head", tied=True),
    "hunyuan_v1_moe": Family(qk_norm="head", tied=True),
    "hy_v3": Family(qk_norm="head", routing_bias=True),
    "minicpm3": Family(attention="mla", tied=True),
    "nemotron": Family(norm_bias=True, gated=False),
    "qwen": Family(qkv_bias=True, out_bias=False, halved_mlp=True),
    "chatglm": Family(qkv_bias=True, out_bias=False),
    "dbrx": LLAMA,
    "arctic": Family(residual_mlp="hidden"),
    "grok-1": Family(tied=True, norms=4),
    "grok-2": Family(norms=4, residual_mlp="intermediate"),
    "phimoe": Family(norm_bias=True, lm_head_bias=True),
    "gpt_oss": Family(
        window_pool_engines=SGLANG,
        qkv_bias=True,
        out_bias=True,
        router_bias=True,
        expert_bias=True,
        sinks=True,
        window_pattern=2,
        window_default=128,
    ),
    "phi": Family(norms=1, norm_bias=True, qkv_bias=True, out_bias=True, mlp_bias=True, gated=False, lm_head_bias=True),
    "gpt2": Family(
        norm_bias=True, qkv_bias=True, out_bias=True, mlp_bias=True, gated=False, tied=True, position_offset=0
    ),
    "opt": Family(
        norm_bias=True, qkv_bias=True, out_bias=True, mlp_bias=True, gated=False, tied=True, position_offset=2
    ),
    "gpt_bigcode": Family(
        norm_bias=True, qkv_bias=True, out_bias=True, mlp_bias=True, gated=False, tied=True, position_offset=0
    ),
    "gptj": Family(
        norms=1, norm_bias=True, qkv_bias=False, out_bias=False, mlp_bias=True, gated=False, lm_head_bias=True
    ),
    "bloom": Family(
        norm_bias=True, qkv_bias=True, out_bias=True, mlp_bias=True, gated=False, tied=True, embedding_norm=True
    ),
    "mpt": Family(gated=False, tied=True),
    "gpt_neox": Family(norm_bias=True, qkv_bias=True, out_bias=True, mlp_bias=True, gated=False),
    "falcon": Family(norms=1, norm_bias=True, qkv_bias=False, out_bias=False, mlp_bias=False, gated=False, tied=True),
    "deepseek_v2": Family(attention="mla"),
    "deepseek_v3": Family(attention="mla", routing_bias=True, draft_copies=2),
    "deepseek_v32": Family(attention="mla", routing_bias=True, draft_copies=2),
    "kimi_k2": Family(attention="mla", routing_bias=True),
    "glm_moe_dsa": Family(attention="mla", routing_bias=True),
    "glm4_moe_lite": Family(attention="mla", routing_bias=True),
    "mistral4": Family(attention="mla"),
    "hy_v4": Family(attention="mla", routing_bias=True, sinks=True),
    "dots3_note": Family(attention="mla", routing_bias=True, draft_copies=1),
    "kimi_linear": Family(attention="mla", routing_bias=True, state="kda"),
    "glm5_next_text": Family(attention="mla", routing_bias=True, state="kda"),
    "qwen4_exp_text": Family(qk_norm="head", output_gate=True, shared_gate=True, norms=0, state="gated_delta_net"),
    "llama4": Family(window_pool_engines=SGLANG),
    "llama4_text": Family(window_pool_engines=SGLANG),
    "mimo_v2": Family(window_pool_engines=SGLANG),
    "step3p5": Family(window_pool_engines=SGLANG, draft_copies=1, draft_uses_copies=True, draft_keeps_window=True),
    "longcat_flash": Family(draft_copies=1),
    "muse_glimmer_text": Family(
        window_pool_engines=SGLANG, norms=4, output_gate=True, window_pattern=4, window_default=2048
    ),
    "laguna": Family(window_pool_engines=SGLANG, qk_norm="head", routing_bias=True),
    "inkling_text": Family(window_pool_engines=SGLANG),
    "bailing_hybrid": Family(routing_bias=True),
}

#: model_type in the config -> family
SAME_AS: dict[str, str] = {
    "phi-msft": "phi",
    "qwen3_5": "qwen3_5_text",
    "qwen3_5_moe": "qwen3_5_moe_text",
    "gemma3": "gemma3_text",
    "gemma3n": "gemma3n_text",
    "gemma4": "gemma4_text",
    "gemma4_unified": "gemma4_text",
    "gemma4_unified_text": "gemma4_text",
    "qwen4_exp": "qwen4_exp_text",
    "qwen3_8_flash_next": "qwen4_exp_text",
    "qwen3_8_flash_next_text": "qwen4_exp_text",
    "exaone": "llama",
    "deepseek": "llama",
    "paddleocr_vl": "ernie4_5",
    "paddleocr_vl_text": "ernie4_5",
    "smollm3": "llama",
    "qwen2_vl": "qwen2",
    "qwen2_5_vl": "qwen2",
    "qwen2_5_vl_text": "qwen2",
    "qwen2_vl_text": "qwen2",
    "qwen3_asr_text": "qwen3_asr",
    "qwen3_asr_thinker": "qwen3_asr",
    "qwen3_vl": "qwen3",
    "qwen3_vl_text": "qwen3",
    "qwen3_vl_moe": "qwen3_moe",
    "qwen3_vl_moe_text": "qwen3_moe",
    "qwen3_omni_moe": "qwen3_moe",
    "qwen3_omni_moe_text": "qwen3_moe",
    "mistral3": "mistral",
    "mllama_text_model": "mllama",
    "llava": "llama",
    "kimi_k25": "kimi_k2",
    "kimi_vl": "deepseek_v3",
    "refinedweb": "falcon",
    "refinedwebmodel": "falcon",
    "minimax_text_01": "minimax",
    "minimax_m1": "minimax",
    "minimax_vl_01": "minimax",
    "phi3_v": "phi3",
    "phi4mm": "phi3",
    "phi4_multimodal": "phi3",
    "minicpm": "llama",
    "qwen2_audio": "qwen2",
    "qwen2_5_omni": "qwen2",
    "qwen2_5_omni_text": "qwen2",
    "bailing_moe_v2": "bailing_moe",
    "ernie4_5_vl_moe": "ernie4_5_moe_vl",
    "ernie4_5_vl_moe_text": "ernie4_5_moe_vl",
    "glm4v": "glm4",
    "glm4v_text": "glm4",
    "glm46v": "glm4",
    "glm_ocr": "glm4",
    "glm_ocr_text": "glm4",
    "internlm3": "llama",
    "xverse": "llama",
    "aquila": "llama",
    "solar_open": "llama",
    "iquestcoder": "llama",
    "mistral_large_3": "deepseek_v3",
    "mimo_v2_flash": "mimo_v2",
    "glm4v_moe": "glm4_moe",
    "minimax_m3_vl": "minimax_m3",
    "minimax_m3_text": "minimax_m3",
    "minimax_m3_vl_text": "minimax_m3",
    "deci": "nemotron-nas",
    "deci_lm": "nemotron-nas",
    "longcat_flash_ngram": "longcat_flash",
    "step3p7": "step3p5",
    "muse_glimmer": "muse_glimmer_text",
    "inkling_mm_model": "inkling_text",
    "inkling_model": "inkling_text",
    "bailing_moe_linear": "bailing_hybrid",
    "diffusion_gemma": "gemma4_text",
    "diffusion_gemma_text": "gemma4_text",
    "step3p7_text": "step3p5",
}

#: class in `architectures` -> family, for configs whose model_type is missing or wrong (Grok-2: git)
FAMILY_OF_CLASS: dict[str, str] = {
    "LlamaForCausalLMEagle3": "eagle3",
    "Eagle3LlamaForCausalLM": "eagle3",
    "Grok1ModelForCausalLM": "grok-1",
    "Grok1ForCausalLM": "grok-2",
    "LongcatFlashForCausalLM": "longcat_flash",
    "LongcatFlashNgramForCausalLM": "longcat_flash",
}

#: families with a builder of their own (planner.model.config.hybrids and the modules that it imports)
OWN_BUILDER = (
    "llama4",
    "llama4_text",
    "nemotron_h",
    "nemotron-nas",
    "falcon_h1",
    "deepseek_v4",
    "granitemoehybrid",
    "jamba",
    "mamba",
    "falcon_mamba",
    "lfm2",
    "lfm2_moe",
    "minimax",
    "mllama",
    "mimo_v2",
    "minimax_m3",
    "step3p5",
    "longcat_flash",
    "qwen4_exp_text",
    "laguna",
    "inkling_text",
    "bailing_hybrid",
    "ernie4_5_moe_vl",
)

#: families from before grouped queries, or with KV heads per block: their configs state no num_key_value_heads
WITHOUT_KV_HEADS = (
    "baichuan",
    "bloom",
    "falcon_mamba",
    "gpt2",
    "gptj",
    "mamba",
    "mpt",
    "nemotron-nas",
    "opt",
    "phi",
    "qwen",
)
#: families whose experts are as wide as intermediate_size states
EXPERTS_OF_INTERMEDIATE_SIZE = (
    *("arctic", "dbrx", "gpt_oss", "granitemoe", "granitemoehybrid", "grok-1", "inkling_text", "jamba", "llama4"),
    *("llama4_text", "minimax", "minimax_m2", "minimax_m3", "mixtral", "olmoe", "phimoe"),
)

#: fields of attention or states that a Llama-like estimate would get wrong
UNKNOWN_MIXER_FIELDS = (
    "kv_lora_rank",
    "compress_ratios",
    "linear_num_key_heads",
    "linear_attn_config",
    "mamba_num_heads",
    "mamba_d_state",
    "ssm_state_size",
    "state_size",
    "hybrid_override_pattern",
    "block_configs",
    "index_topk",
    "is_encoder_decoder",
)
