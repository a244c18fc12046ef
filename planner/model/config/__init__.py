"""From a Hugging Face config.json, or figures entered by hand, to a ModelShape.

fields     typed access to an untrusted config
blocks     the matrices of each building block
families   traits of each model_type, as data
decoder    layers of the families that differ in traits only
hybrids    layers of the families with a builder of their own
states     layers with Mamba, short convolutions or linear attention
mixtures   further families with experts and a builder of their own
qwen4      Qwen4: hyper-connections, sparse attention with an indexer, hashed n-gram tables
mixers     token mixers that several families share
encoder_decoder Whisper, BART, T5
vision     vision towers, audio encoders and projectors
checkpoint reads quantization_config
build      puts a ModelShape together
"""

from planner.model.config.build import model_from_config, model_from_shape

__all__ = ["model_from_config", "model_from_shape"]
