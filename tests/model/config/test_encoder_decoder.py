"""Whisper, BART, T5: totals of the hub."""

import pytest

from planner.model.config.build import model_from_config


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
