"""Whisper, BART, T5: totals of the hub."""

import pytest

from planner.model.config.build import model_from_config
from planner.model.config.encoder_decoder import ENCODER_DECODER, encoder_decoder_stacks
from planner.model.config.fields import Fields
from planner.model.shape import MixerKind


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


TINY = {"d_model": 64, "decoder_layers": 2, "encoder_layers": 3, "decoder_attention_heads": 4, "decoder_ffn_dim": 128,
        "vocab_size": 100, "max_source_positions": 50, "max_target_positions": 20, "num_mel_bins": 8}  # fmt: skip


# Biases but for the keys, LayerNorm with bias: attention 4 × 64 × 64 + 3 × 64, MLP 2 × 64 × 128 + 128 + 64.
def test_layers_and_encoder_of_whisper_by_hand() -> None:
    made = encoder_decoder_stacks(Fields(TINY), "whisper")
    attention, mlp, norm = 4 * 64 * 64 + 3 * 64, 2 * 64 * 128 + 128 + 64, 2 * 64
    assert [layer.num_parameters for layer in made.layers] == 2 * [2 * attention + mlp + 3 * norm, 0]
    convolutions = (3 * 8 * 64 + 64) + (3 * 64 * 64 + 64)
    assert made.encoder_parameters == 3 * (attention + mlp + 2 * norm) + convolutions + 50 * 64 + norm
    assert made.extra_embedding_parameters == 20 * 64
    assert made.final_norm_parameters == norm


# Keys and values of the whole source for every running sequence, whatever it has written.
def test_cross_attention_keeps_the_longest_source() -> None:
    own, cross = encoder_decoder_stacks(Fields(TINY), "whisper").layers[:2]
    assert (own.mixer.kind, own.mixer.window_tokens) == (MixerKind.FULL, None)
    assert (cross.mixer.kind, cross.mixer.window_tokens) == (MixerKind.STATE, 50)
    assert not cross.mixer.is_state


# T5 has no biases and one relative-position table of 32 buckets per head for each stack.
def test_t5_has_no_biases_and_learned_buckets() -> None:
    config = {"d_model": 64, "d_kv": 16, "d_ff": 128, "num_heads": 4, "num_layers": 2, "num_decoder_layers": 2,
              "vocab_size": 100}  # fmt: skip
    made = encoder_decoder_stacks(Fields(config), "t5")
    assert made.layers[0].num_parameters == 2 * 4 * 64 * 64 + 2 * 64 * 128 + 3 * 64
    assert made.extra_embedding_parameters == 0
    assert made.final_norm_parameters == 64 + 32 * 4


def test_the_families_that_are_known() -> None:
    assert {"whisper", "bart", "t5"} <= set(ENCODER_DECODER)
