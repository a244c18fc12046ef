"""Parameters of the vision tower or audio encoder and of its projector."""

from __future__ import annotations

from collections.abc import Callable

from planner.model.config.fields import Fields
from planner.model.config.inkling import inkling_towers
from planner.model.shape import VisionTower

#: towers known exactly from published totals: constant + parameters per unit of hidden size (hub totals less the
#: language model; the same constants for every size of the family)
KNOWN_TOWERS: dict[str, tuple[int, int]] = {
    "gemma3": (416_867_184, 1152),
    "gemma4": (569_550_384, 1152),
    "gemma4 with sound": (472_189_216, 2304),
    "llama4": (871_932_416, 0),
    "kimi_k25": (471_143_920, 0),
    "glm4v_moe": (858_681_856, 0),
    "mllama": (863_567_379, 7681),
    "gemma3n": (983_281_504, 0),
    "mimo_v2": (989_721_600, 0),  # MiMo-V2.5 less MiMo-V2-Flash: images and sound
}

#: model_type of a multimodal file -> the one with the same towers
OUTER_SAME_AS = {"diffusion_gemma": "gemma4", "ernie4_5_vl_moe": "ernie4_5_moe_vl", "inkling_model": "inkling_mm_model"}
ESTIMATED_TOWER = "vision tower: estimated"
#: image processors of Qwen-VL: at most 16,384 merged tokens of 2 × 2 patches (max_pixels, longest_edge)
QWEN_PATCHES = 65_536
QWEN3_5 = ("qwen3_5", "qwen3_5_moe", "qwen4_exp", "qwen3_8_flash_next")  # one tower
QWEN_VL = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl")
OWN_RESOLUTION = (*QWEN_VL, "qwen3_omni", *QWEN3_5)
GEMMA4_IMAGE_TOKENS = 2496
MUSE_PROJECTOR = 4096  # projector_hidden_size of the released checkpoint
#: dots3-note: routed experts of each block of its tower (transformers 5.24 Dots3NoteVisionConfig), and parameters of
#: its audio encoder: 32 blocks of 1,280 with a gated MLP of 5,120, and an adapter of two matrices
DOTS3_EXPERTS = [-1] * 25 + [*range(4, 65, 4), 64]
DOTS3_AUDIO = 32 * (4 * 1280**2 + 3 * 1280 * 5120) + 1280 * 5120 + 5120**2
GEMMA4_SMALL_WIDTH = 768  # of the tower in the sizes that accept sound


def vision_parameters(fields: Fields) -> int:
    """Parameters of a multimodal model outside its language model.

    Parameters
    ----------
    fields : Fields
        The config: the tower is looked up by the outer model_type, or sized from vision_config.

    Returns
    -------
    int
        Zero for a text-only model.
    """
    outer = OUTER_SAME_AS.get(fields.outer_type, fields.outer_type)
    hidden = fields.integer("hidden_size")
    section = fields.root.get("vision_config")
    if outer == "inkling_mm_model":
        return inkling_towers(fields)
    if outer == "gemma4" and isinstance(section, dict) and section.get("hidden_size") == GEMMA4_SMALL_WIDTH:
        outer = "gemma4 with sound"
    if outer in KNOWN_TOWERS and (fields.text is not fields.root or section is not None):
        constant, per_hidden = KNOWN_TOWERS[outer]
        return constant + per_hidden * hidden
    if outer == "qwen3_asr":
        sound = fields.root.get("audio_config")
        return _qwen3_asr_encoder(Fields(sound if isinstance(sound, dict) else {}), hidden)
    if not isinstance(section, dict):
        if outer not in QWEN3_5 or fields.text is fields.root:
            return 0
        section = {}
    vision = Fields(section)
    if outer in TOWERS:
        return TOWERS[outer](vision, hidden)
    if outer.startswith("qwen3_vl") or outer.startswith("qwen3_omni"):
        return _qwen3_tower(vision, hidden)
    if outer == "minimax_m3_vl":
        return _minimax_m3_tower(vision, hidden, fields.integer("projector_hidden_size", hidden))
    if outer == "step3p7":
        return _step_tower(vision, hidden) + (hidden if fields.flag("projector_bias", False) else 0)
    fields.estimated.append(f"{ESTIMATED_TOWER} from vision_config")
    return _generic_tower(vision, hidden)


def vision_tower(fields: Fields) -> VisionTower | None:
    """Shape of the encoder where its largest item is known; None for other towers and text-only models.

    Parameters
    ----------
    fields : Fields
        The config; fields that vision_config lacks have the family's value.

    Returns
    -------
    VisionTower or None
        Source: the image processors and vision modules of Qwen2-VL to Qwen3.5 and Gemma 4 in Hugging Face
        transformers; vLLM gemma4_mm.py (videos of 32 frames of 70 tokens, nine patches each, in 2,496 tokens).
    """
    outer = OUTER_SAME_AS.get(fields.outer_type, fields.outer_type)
    section = fields.root.get("vision_config")
    if outer in QWEN3_5 and fields.text is not fields.root:
        section = section if isinstance(section, dict) else {}
    if outer == "gemma4":
        return _gemma4_tower(Fields(section if isinstance(section, dict) else {}))
    if not isinstance(section, dict) or not outer.startswith(OWN_RESOLUTION):
        return None
    vision = Fields(section)
    if outer == "qwen2_vl":
        width = vision.integer("embed_dim", 1280, at_most=10**5)
        inner, gated, patch = 4 * width, False, 14
    elif outer == "qwen2_5_vl":
        width, gated, patch = _depth_width(vision)[1], True, 14
        inner = vision.integer("intermediate_size", 3420)
    else:
        width, gated, patch = vision.integer("hidden_size", 1152, at_most=10**5), False, 16
        inner = vision.integer("intermediate_size", 4304)
    side = vision.integer("patch_size", patch, at_most=1000)
    deep = outer.startswith(("qwen3_vl", "qwen3_omni"))
    return VisionTower(
        width=width,
        intermediate_size=inner,
        gated=gated,
        patch_elements=3 * 2 * side**2,
        most_patches=QWEN_PATCHES,
        item_tokens=QWEN_PATCHES // 4,
        learned_positions=not outer.startswith("qwen2"),
        deep_features=len(vision.integers("deepstack_visual_indexes") or (8, 16, 24)) if deep else 0,
        videos_as_images=outer.startswith("qwen2"),
    )


def _gemma4_tower(vision: Fields) -> VisionTower:
    side = vision.integer("patch_size", 16, at_most=1000)
    return VisionTower(
        width=vision.integer("hidden_size", 1152, at_most=10**5),
        intermediate_size=vision.integer("intermediate_size", 4304),
        gated=True,
        patch_elements=3 * side**2,
        most_patches=32 * 70 * 9,
        item_tokens=GEMMA4_IMAGE_TOKENS,
    )


def image_tokens(fields: Fields) -> int:
    """Tokens of the largest image, where its tokens attend to each other and must enter in one step.

    Parameters
    ----------
    fields : Fields
        The config; `use_bidirectional_attention` of the language model.

    Returns
    -------
    int
        Zero where prompts may be split anywhere. Source: vLLM issue 42687 (a video of Gemma 4 has the most tokens).
    """
    bidirectional = fields.text.get("use_bidirectional_attention") == "vision"
    return GEMMA4_IMAGE_TOKENS if bidirectional and fields.text.get("model_type") == "gemma4_text" else 0


def _depth_width(vision: Fields) -> tuple[int, int]:
    depth = vision.integer("depth", vision.integer("num_hidden_layers", 24, at_most=1000), at_most=1000)
    return depth, vision.integer("hidden_size", vision.integer("embed_dim", 1024, at_most=10**5), at_most=10**5)


def _qwen2_tower(vision: Fields, hidden: int) -> int:
    """Qwen2-VL: plain MLP with biases, LayerNorm, 2 × 2 merger; exact for the 2B and 7B sizes."""
    depth, width = vision.integer("depth", 32, at_most=1000), vision.integer("embed_dim", 1280, at_most=10**5)
    inner = 4 * width
    layer = 4 * width * width + 4 * width + 2 * width * inner + inner + width + 4 * width
    patches = 3 * 2 * vision.integer("patch_size", 14) ** 2 * width
    merged = 4 * width
    return depth * layer + patches + 2 * width + merged * merged + merged + merged * hidden + hidden


def _qwen2_5_tower(vision: Fields, hidden: int) -> int:
    """Gated MLP with biases, RMSNorm, 2 × 2 merger; exact for the 3B, 7B and 72B sizes."""
    depth, width = _depth_width(vision)
    inner = vision.integer("intermediate_size", 3420)
    layer = 4 * width * width + 4 * width + 3 * width * inner + 2 * inner + width + 2 * width
    merged = 4 * width
    patches = 3 * 2 * vision.integer("patch_size", 14) ** 2 * width
    return depth * layer + patches + width + merged * merged + merged + merged * hidden + hidden


def _qwen3_5_tower(vision: Fields, hidden: int) -> int:
    """Qwen3.5: LayerNorm, learned positions, one merger; exact for the 0.8B, 2B, 4B, 9B and 27B sizes."""
    depth, width = vision.integer("depth", 27, at_most=1000), vision.integer("hidden_size", 1152, at_most=10**5)
    inner = vision.integer("intermediate_size", 4304)
    layer = 4 * width * width + 4 * width + 2 * width * inner + inner + width + 4 * width
    merged = 4 * width
    patches = 3 * 2 * vision.integer("patch_size", 16) ** 2 * width + width
    return depth * layer + patches + 2304 * width + merged * merged + merged + 2 * width + merged * hidden + hidden


def _qwen3_tower(vision: Fields, hidden: int) -> int:
    """Qwen3-VL: LayerNorm, learned positions, one merger and three more for deep features."""
    depth, width = _depth_width(vision)
    inner = vision.integer("intermediate_size", 4304)
    layer = 4 * width * width + 4 * width + 2 * width * inner + inner + width + 4 * width
    merged = 4 * width
    merger = merged * merged + merged + merged * hidden + hidden
    patches = 3 * 2 * vision.integer("patch_size", 16) ** 2 * width + width
    return depth * layer + patches + 2304 * width + merger + 2 * width + 3 * (merger + 2 * merged)


def _pixtral_tower(vision: Fields, hidden: int) -> int:
    """Pixtral in Mistral Small 3.1: gated MLP without biases, 2 × 2 patch merger, two-layer projector."""
    depth, width = _depth_width(vision)
    inner = vision.integer("intermediate_size", 4096)
    layer = 4 * width * width + 3 * width * inner + 2 * width
    patches = 3 * vision.integer("patch_size", 14) ** 2 * width + width
    projector = width + 4 * width * width + width * hidden + hidden * hidden
    return depth * layer + patches + projector


def _kimi_k3_tower(vision: Fields, hidden: int) -> int:
    """Kimi-K3: RMSNorm, no biases, attention wider than the tower, learned positions, 2 × 2 patch merger."""
    depth, width = vision.integer("vt_num_hidden_layers", 27, at_most=1000), vision.integer("vt_hidden_size", 1024)
    inner, heads = vision.integer("vt_intermediate_size", 4096), vision.integer("qkv_hidden_size", 1536)
    layer = 4 * width * heads + 2 * width * inner + 2 * width
    positions = vision.integer("init_pos_emb_height", 64) * vision.integer("init_pos_emb_width", 64) * width
    patches = 3 * vision.integer("patch_size", 14) ** 2 * width
    merged = 4 * width
    return depth * layer + positions + patches + width + merged * merged + merged * hidden + hidden


def _minimax_m3_tower(vision: Fields, hidden: int, projector: int) -> int:
    """MiniMax-M3: CLIP blocks with biases, two-frame patches, a projector and a 2 × 2 merger behind it."""
    depth, width = _depth_width(vision)
    inner = vision.integer("intermediate_size", 4 * width)
    layer = 4 * width * width + 4 * width + 2 * width * inner + inner + width + 4 * width
    patches = 3 * 2 * vision.integer("patch_size", 14) ** 2 * width
    out = projector + projector * hidden + hidden  # projector and merger have the same output
    return depth * layer + patches + 2 * width + width * projector + 4 * hidden * projector + 2 * out


def _step_tower(vision: Fields, hidden: int) -> int:
    """Step-3.7: LayerNorm with biases, layer scales, learned positions, two convolutions that halve and double."""
    depth, width = vision.integer("layers", 47, at_most=1000), vision.integer("width", 1536, at_most=10**5)
    ratio, patch = vision.raw("mlp_ratio"), vision.integer("patch_size", 14)
    inner = int(width * (ratio if isinstance(ratio, (int, float)) and 0 < ratio < 100 else 8960 / 1536))
    layer = 4 * width * width + 4 * width + 2 * width * inner + inner + width + 6 * width
    start = (vision.integer("image_size", 728) // patch) ** 2 * width + 3 * patch**2 * width + 2 * width
    halving = 9 * width * 2 * width + 2 * width + 9 * 2 * width * 4 * width + 4 * width
    return depth * layer + start + halving + 4 * width * hidden


def _qwen3_asr_encoder(sound: Fields, hidden: int) -> int:
    """Qwen3-ASR: three convolutions that halve, LayerNorm and biases, a two-layer projector; both sizes exact."""
    depth, width = sound.integer("encoder_layers", 24, at_most=1000), sound.integer("d_model", 1024, at_most=10**5)
    inner, channels = sound.integer("encoder_ffn_dim", 4096), sound.integer("downsample_hidden_size", 480)
    layer = 4 * width * width + 4 * width + 2 * width * inner + inner + width + 4 * width
    bands = sound.integer("num_mel_bins", 128)
    for _ in range(3):
        bands = -(-bands // 2)
    convolutions = 9 * channels + channels + 2 * (9 * channels * channels + channels) + channels * bands * width
    out = sound.integer("output_dim", hidden)
    return depth * layer + convolutions + 2 * width + width * width + width + width * out + out


def _muse_tower(vision: Fields, hidden: int) -> int:
    """Muse Glimmer: LayerNorm and biases, two-frame patches, learned positions, an adapter of two matrices."""
    depth, width = _depth_width(vision)
    inner, patch = vision.integer("intermediate_size", 8960), vision.integer("patch_size", 14)
    layer = 4 * width * width + 4 * width + 2 * width * inner + inner + width + 4 * width
    positions = vision.integer("pos_emb_height", 32) * vision.integer("pos_emb_width", 32) * width
    start = 3 * vision.integer("patch_temporal", 2) * patch**2 * width + positions + 4 * width
    merged = vision.integer("merge_size", 2) ** 2 * width
    return depth * layer + start + (merged + MUSE_PROJECTOR + hidden) * MUSE_PROJECTOR


def _ernie_tower(vision: Fields, hidden: int) -> int:
    """ERNIE 4.5 VL: LayerNorm and biases, one-frame patches, a resampler that merges 2 x 2 patches of two frames."""
    depth, width = _depth_width(vision)
    inner = vision.integer("intermediate_size", 4 * width)
    layer = 4 * width * width + 4 * width + 2 * width * inner + inner + width + 4 * width
    start = 3 * vision.integer("patch_size", 14) ** 2 * width + 2 * width
    merged = 4 * width
    spatial = 2 * merged * merged + 4 * merged
    temporal = 2 * merged * merged + merged * merged + 4 * merged
    return depth * layer + start + spatial + temporal + merged * hidden + 2 * hidden


def _dots3_tower(vision: Fields, hidden: int) -> int:
    """dots3-note: dense blocks, then blocks of ever more experts; the audio encoder of the release is added.

    Source: transformers 5.24 models/dots3_note; vLLM models/dots3_note/nvidia/vision.py, audio_encoder.py.
    """
    width, dense = vision.integer("embed_dim", 1536, at_most=10**5), vision.integer("intermediate_size", 4224)
    expert = vision.integer("moe_intermediate_size", 2112)
    counts = vision.raw("pyramid_num_routed")
    routed = [x for x in counts if isinstance(x, int)] if isinstance(counts, list) else DOTS3_EXPERTS
    blocks = sum(
        4 * width**2 + (3 * width * expert * count + width * count if count > 0 else 3 * width * dense)
        for count in routed
    )
    merged = 4 * width
    adapter = merged * merged + merged * hidden + merged + hidden
    return blocks + 3 * vision.integer("patch_size", 14) ** 2 * width + adapter + DOTS3_AUDIO


def _generic_tower(vision: Fields, hidden: int) -> int:
    depth, width = _depth_width(vision)
    inner = vision.integer("intermediate_size", 4 * width)
    return depth * (4 * width * width + 2 * width * inner) + width * hidden + hidden * hidden


#: outer model_type -> parameters, from vision_config and the hidden size of the language model
TOWERS: dict[str, Callable[[Fields, int], int]] = {
    "qwen2_vl": _qwen2_tower,
    "qwen2_5_vl": _qwen2_5_tower,
    "qwen3_5": _qwen3_5_tower,
    "qwen3_5_moe": _qwen3_5_tower,
    "qwen4_exp": _qwen3_5_tower,
    "qwen3_8_flash_next": _qwen3_5_tower,
    "kimi_k3": _kimi_k3_tower,
    "mistral3": _pixtral_tower,
    "muse_glimmer": _muse_tower,
    "ernie4_5_moe_vl": _ernie_tower,
    "dots3_note": _dots3_tower,
}
