"""Parameters of the vision tower and projector beside the language model."""

from __future__ import annotations

from typing import Any

from planner.model_config.fields import Fields

#: towers whose size the published totals give exactly: constant + parameters per unit of hidden size
#: (hub totals less the language model, the same constants for every size of the family)
KNOWN_TOWERS: dict[str, tuple[int, int]] = {
    "gemma3": (416_867_184, 1152),
    "gemma4": (569_550_384, 1152),
    "llama4": (871_932_416, 0),
    "qwen3_5": (437_132_016, 4609),
    "qwen3_5_moe": (437_132_016, 4609),
    "kimi_k25": (471_143_920, 0),
}


def vision_parameters(fields: Fields, model_type: str) -> int:
    """Count the parameters of a multimodal model that are not its language model's.

    Parameters
    ----------
    fields : Fields
        The config; the tower is known by the outer model_type or sized from vision_config.
    model_type : str
        Family of the language model.

    Returns
    -------
    int
        Zero for a text-only model.
    """
    outer = fields.root.get("model_type")
    outer = outer.lower() if isinstance(outer, str) else ""
    hidden = fields.integer("hidden_size")
    if outer in KNOWN_TOWERS and (fields.text is not fields.root or "vision_config" in fields.root):
        constant, per_hidden = KNOWN_TOWERS[outer]
        return constant + per_hidden * hidden
    section = fields.root.get("vision_config")
    if not isinstance(section, dict):
        return 0
    vision = Fields(section)
    if outer in ("qwen2_vl", "qwen2_5_vl"):
        return _qwen2_5_tower(vision, hidden)
    if outer.startswith("qwen3_vl") or outer.startswith("qwen3_omni"):
        return _qwen3_tower(vision, hidden)
    if outer == "mistral3":
        return _pixtral_tower(vision, hidden)
    fields.estimated.append("vision tower: estimated from vision_config")
    return _generic_tower(vision, hidden)


def _depth_width(vision: Fields) -> tuple[int, int]:
    depth = vision.integer("depth", vision.integer("num_hidden_layers", 24, at_most=1000), at_most=1000)
    return depth, vision.integer("hidden_size", vision.integer("embed_dim", 1024, at_most=10**5), at_most=10**5)


def _qwen2_5_tower(vision: Fields, hidden: int) -> int:
    """Gated MLP with biases, RMSNorm, 2 × 2 merger; exact for the 3B, 7B and 72B sizes."""
    depth, width = _depth_width(vision)
    inner = vision.integer("intermediate_size", 3420)
    layer = 4 * width * width + 4 * width + 3 * width * inner + 2 * inner + width + 2 * width
    merged = 4 * width
    patches = 3 * 2 * vision.integer("patch_size", 14) ** 2 * width
    return depth * layer + patches + width + merged * merged + merged + merged * hidden + hidden


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


def _generic_tower(vision: Fields, hidden: int) -> int:
    depth, width = _depth_width(vision)
    inner = vision.integer("intermediate_size", 4 * width)
    return depth * (4 * width * width + 2 * width * inner) + width * hidden + hidden * hidden


__all__: list[Any] = ["vision_parameters"]
