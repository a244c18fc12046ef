"""Token mixers that several families share."""

from __future__ import annotations

from planner.model.config.blocks import mamba_linears
from planner.model.config.decoder import Heads
from planner.model.config.fields import Fields
from planner.model.shape import Linear, Mixer, MixerKind


def full_mixer(heads: Heads, kind: MixerKind = MixerKind.FULL, window: int | None = None) -> Mixer:
    """Return the mixer of grouped-query attention, over the whole sequence or a window."""
    return Mixer(
        kind=kind,
        num_heads=heads.heads,
        num_kv_heads=heads.kv_heads,
        head_dim=heads.head_dim,
        value_head_dim=heads.head_dim,
        window_tokens=window,
    )


def mamba2_mixer(
    fields: Fields, prefix: str = "mamba_", *, gated_norm: bool = False, wide_state: bool = False
) -> tuple[Mixer, tuple[Linear, ...], int]:
    """Mamba-2 block: mixer, matrices and small parameters, with the gated norm where there is one."""
    hidden = fields.integer("hidden_size")
    if prefix == "mamba_":
        heads, head_dim = fields.integer("mamba_num_heads"), fields.integer("mamba_head_dim")
        groups, state = fields.integer("n_groups"), fields.integer("ssm_state_size")
        kernel, inner, norm = fields.integer("conv_kernel", 4), 0, True
    else:
        heads, head_dim = fields.integer("mamba_n_heads"), fields.integer("mamba_d_head")
        groups, state = fields.integer("mamba_n_groups", 1), fields.integer("mamba_d_state")
        kernel, norm = fields.integer("mamba_d_conv", 4), gated_norm or fields.flag("mamba_rms_norm", False)
        inner = fields.integer("mamba_d_ssm", heads * head_dim)
    inner = inner or heads * head_dim
    channels = inner + 2 * groups * state
    # Nemotron 3 keeps the recurrent state in fp32, Nemotron-H in the model's dtype
    wide_state |= fields.has("n_routed_experts")
    wide = fields.text_value("mamba_ssm_cache_dtype", "float32" if wide_state else "")
    conv_bias = fields.flag("use_conv_bias", fields.flag("mamba_conv_bias", True))
    small = channels * (kernel + int(conv_bias)) + 3 * heads + (inner if norm else 0)
    mixer = Mixer(
        kind=MixerKind.STATE,
        num_heads=heads,
        num_kv_heads=groups,
        head_dim=state,
        value_head_dim=head_dim,
        state_elements=heads * head_dim * state,
        conv_elements=channels * (kernel - 1),
        state_element_bytes=4 if wide == "float32" else 2,
    )
    return mixer, mamba_linears(hidden, inner, groups, state, heads), small
