"""The shape of a model: its layers by kind and every weight matrix by tensor group.

Memory reads the parameters by group, step time the shapes of matrices, the KV cache the token mixers.
`planner.model.config` builds it from a Hugging Face config.json or from dimensions entered by hand.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import StrEnum
from functools import lru_cache

from planner.errors import InvalidInput, require_choice, require_int, require_number

STATE_DTYPES = ("auto", "float32", "bfloat16", "float16")
MEDIA = ("auto", "images", "none")


class MixerKind(StrEnum):
    """How a layer mixes tokens, which decides what it caches."""

    FULL = "full_attention"
    SLIDING = "sliding_window"
    CHUNKED = "chunked_local"
    MLA = "mla"
    STATE = "linear_state"  # Mamba, gated delta net, linear attention: one state per sequence
    NONE = "none"


class Shard(StrEnum):
    """How tensor parallelism divides a matrix."""

    COLUMN = "column"  # by output features
    ROW = "row"  # by input features
    KV_COLUMN = "kv_column"  # by KV heads, replicated once GPUs outnumber them
    VOCAB = "vocab"  # embedding and lm_head: by rows of the vocabulary
    EXPERT = "expert"  # each expert divided by tensor parallelism, or whole experts dealt out by expert parallelism
    REPLICATED = "replicated"


class TensorGroup(StrEnum):
    """What a tensor belongs to: quantisation schemes name these groups."""

    EMBEDDING = "embedding"
    NGRAM = "ngram"  # hashed n-gram tables, which some engines keep in host memory
    LM_HEAD = "lm_head"
    ATTENTION = "attention"
    INDEXER = "indexer"  # of Qwen4's sparse attention; in other families it counts as attention
    HYPER_CONNECTION = "hyper_connection"  # mixes the parallel residual streams
    MLP = "mlp"
    EXPERT = "expert"
    SHARED_EXPERT = "shared_expert"
    ROUTER = "router"
    STATE = "state"
    NORM = "norm"
    VISION = "vision"
    MTP = "mtp"


@dataclass(frozen=True, slots=True, kw_only=True)
class Linear:
    """One weight matrix, or `count` equal ones (the experts of a layer)."""

    name: str
    group: TensorGroup
    in_features: int
    out_features: int
    shard: Shard
    bias: bool = False
    count: int = 1
    quantizable: bool = True  # False: schemes leave it in 16 bits (router, small projections)

    @property
    def is_grouped_output(self) -> bool:
        """Whether it projects attention's output by groups of heads; no other projection of attention has several."""
        return self.group is TensorGroup.ATTENTION and self.count > 1

    @property
    def num_parameters(self) -> int:
        """Parameters of all `count` matrices, biases included."""
        return self.count * self.out_features * (self.in_features + (1 if self.bias else 0))


@dataclass(frozen=True, slots=True, kw_only=True)
class Mixer:
    """The token mixer of a layer: what it caches and what its attention costs.

    `head_dim` is the key dimension; `value_head_dim` differs in some models. MLA caches `kv_lora_rank +
    qk_rope_head_dim` elements per token, the same on every tensor-parallel rank. A state layer caches `state_elements`
    (in the state dtype) and `conv_elements` per sequence, whatever its length. An n-gram layer keeps the last
    `side_taps` inputs of `side_channels` channels.
    """

    kind: MixerKind
    num_heads: int = 0
    num_kv_heads: int = 0
    head_dim: int = 0
    value_head_dim: int = 0
    window_tokens: int | None = None  # SLIDING: window; CHUNKED: chunk
    reuses_kv_of_another_layer: bool = False
    q_lora_rank: int = 0
    kv_lora_rank: int = 0
    qk_nope_head_dim: int = 0
    qk_rope_head_dim: int = 0
    indexer_head_dim: int = 0  # sparse attention: elements per token of the indexer's key cache
    indexer_num_heads: int = 0
    indexer_top_k: int = 0  # tokens that a query attends to; a layer without an indexer takes those of another layer
    indexer_compression: int = 1  # tokens per cached key of the indexer (Qwen4 pools four)
    kv_compression: int = 1  # tokens per cached entry (DeepSeek-V4: 4 or 128)
    state_elements: int = 0
    conv_elements: int = 0
    state_element_bytes: int = 4
    side_channels: int = 0  # 16-bit, whole on every rank
    side_taps: int = 0

    def __post_init__(self) -> None:
        require_choice("kind", self.kind, MixerKind)
        if self.kind in (MixerKind.FULL, MixerKind.SLIDING, MixerKind.CHUNKED):
            for name in ("num_heads", "num_kv_heads", "head_dim", "value_head_dim"):
                require_int(name, getattr(self, name))
            if self.num_heads % self.num_kv_heads:
                raise InvalidInput("num_kv_heads", self.num_kv_heads, f"a divisor of num_heads ({self.num_heads})")
        if self.kind in (MixerKind.SLIDING, MixerKind.CHUNKED):
            require_int("window_tokens", self.window_tokens)
        require_int("indexer_compression", self.indexer_compression)
        for name in ("indexer_head_dim", "indexer_num_heads", "side_channels", "side_taps"):
            require_int(name, getattr(self, name), at_least=0)
        if self.kind is MixerKind.MLA:
            for name in ("num_heads", "kv_lora_rank"):
                require_int(name, getattr(self, name))
            require_int("qk_rope_head_dim", self.qk_rope_head_dim, at_least=0)

    @property
    def is_state(self) -> bool:
        """Whether it keeps a recurrent state per sequence; a cross-attention cache does not count."""
        return self.kind is MixerKind.STATE and not self.window_tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class Experts:
    """The mixture-of-experts part of a layer's MLP."""

    num_experts: int
    experts_per_token: int
    intermediate_size: int
    shared_intermediate_size: int = 0

    def __post_init__(self) -> None:
        require_int("num_experts", self.num_experts)
        require_int("experts_per_token", self.experts_per_token)
        require_int("intermediate_size", self.intermediate_size)
        if self.experts_per_token > self.num_experts:
            raise InvalidInput("experts_per_token", self.experts_per_token, f"at most num_experts ({self.num_experts})")


@dataclass(frozen=True, slots=True, kw_only=True)
class Layer:
    """One kind of layer: its mixer, its experts if any, all its matrices and its small vectors."""

    mixer: Mixer
    linears: tuple[Linear, ...]
    experts: Experts | None = None
    norm_parameters: int = 0  # norms, sinks, convolutions, gates: 16-bit, replicated

    @property
    def num_parameters(self) -> int:
        """Parameters of one such layer."""
        return sum(linear.num_parameters for linear in self.linears) + self.norm_parameters


@dataclass(frozen=True, slots=True, kw_only=True)
class VisionTower:
    """Encoder of images and videos. Its largest item has `most_patches` patches and becomes `item_tokens` tokens."""

    width: int
    intermediate_size: int
    gated: bool
    patch_elements: int  # colours × frames × patch height × patch width
    most_patches: int
    item_tokens: int
    learned_positions: bool = False  # one embedding per patch, held during the forward pass
    deep_features: int = 0  # outputs of inner blocks that the language model takes too, each as wide as its own
    videos_as_images: bool = False  # each pair of a video's frames may be as large as an image; else one limit for all

    def __post_init__(self) -> None:
        for name in ("width", "intermediate_size", "patch_elements", "most_patches", "item_tokens"):
            require_int(name, getattr(self, name), at_most=10**8)


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelShape:
    """Everything that sizing and step time need to know of a model.

    `layer_kinds` holds the distinct layers; `layer_order` names one of them for each layer from first to last, so that
    pipeline stages of hybrid models are exact.
    """

    name: str
    model_type: str
    hidden_size: int
    vocab_size: int
    max_position_embeddings: int
    layer_kinds: tuple[Layer, ...]
    layer_order: tuple[int, ...]
    tie_word_embeddings: bool = False
    extra_embedding_parameters: int = 0  # learned positions and the like
    draft_vocab_size: int = 0  # EAGLE heads: rows of their own output head; their embedding is the model's
    ngram_parameters: int = 0  # hashed n-gram tables, divided by rows; a token reads a few of them
    final_norm_parameters: int = 0
    lm_head_bias: bool = False
    vision_parameters: int = 0  # encoder and projector, 16-bit unless the scheme says otherwise
    vision_tower: VisionTower | None = None  # where its shape is known and images keep their resolution
    encoder_splits: tuple[tuple[str, str], ...] = ()  # engine family, what ranks may divide instead: images, nothing
    image_tokens: int = 0  # of the largest image, where its tokens attend to each other and must enter in one step
    mtp_parameters: int = 0  # multi-token-prediction layers, loaded only when drafting
    mtp_shared_parameters: int = 0  # of these, copies of embedding and head that engines do not load again
    draft_keeps_window: bool = False  # its multi-token-prediction layer attends within the model's window
    window_pool_engines: tuple[str, ...] = ()  # engine families that give this model's windows a pool of their own
    second_runner_since: tuple[int, int] | None = None  # vLLM release from which its second model runner takes it
    rope_cache_elements: int = 0  # precomputed rotary table: positions × rotary width, summed over tables
    extended_context: int | None = None  # tokens, with the RoPE scaling that the model card describes
    native_dtype: str = "bf16"  # dtype of the checkpoint's unquantised tensors: bf16, fp16, fp32
    quantization: str = ""  # scheme of the published checkpoint; "" = not quantised
    unquantized_groups: tuple[str, ...] = ()  # TensorGroup values that the checkpoint leaves in native_dtype
    group_bits: tuple[tuple[str, float], ...] = ()  # TensorGroup values with bits of their own in the checkpoint
    kv_cache_quantization: str = ""  # type of KV cache that the checkpoint asks for; "" = none
    published_parameters: int | None = None
    estimated_fields: tuple[str, ...] = ()  # fields that the config lacks and that were assumed
    source: str = ""
    num_layers: int = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "num_layers", len(self.layer_order))
        for name in ("hidden_size", "vocab_size", "max_position_embeddings", "num_layers"):
            require_int(name, getattr(self, name))
        for name in ("draft_vocab_size", "image_tokens", "ngram_parameters", "vision_parameters", "mtp_parameters"):
            require_int(name, getattr(self, name), at_least=0, at_most=10**15)
        require_int("mtp_shared_parameters", self.mtp_shared_parameters, at_least=0, at_most=self.mtp_parameters)
        if self.extended_context is not None:
            require_int("extended_context", self.extended_context)
        require_choice("kv_cache_quantization", self.kv_cache_quantization, ("", "fp8"))
        for group, bits in self.group_bits:
            require_choice("group_bits", group, tuple(TensorGroup))
            require_number("group_bits", bits, above=0, at_most=64)
        if any(not 0 <= kind < len(self.layer_kinds) for kind in self.layer_order):
            raise InvalidInput("layer_order", self.layer_order, f"indices below {len(self.layer_kinds)}")

    @property
    def layers(self) -> tuple[Layer, ...]:
        """The layers from first to last."""
        return tuple(self.layer_kinds[kind] for kind in self.layer_order)

    def layer_counts(self) -> tuple[tuple[Layer, int], ...]:
        """Each distinct layer and how often it occurs."""
        return tuple((layer, self.layer_order.count(kind)) for kind, layer in enumerate(self.layer_kinds))

    @property
    def embedding_parameters(self) -> int:
        """Parameters of the input embedding, learned positions and n-gram tables included."""
        own = 0 if self.draft_vocab_size else self.vocab_size * self.hidden_size
        return own + self.extra_embedding_parameters + self.ngram_parameters

    @property
    def lm_head_parameters(self) -> int:
        """Parameters of the output head; zero when it is tied to the embedding."""
        weight = 0 if self.tie_word_embeddings else (self.draft_vocab_size or self.vocab_size) * self.hidden_size
        return weight + (self.vocab_size if self.lm_head_bias else 0)

    @property
    def num_parameters(self) -> int:
        """Parameters of the language model: embeddings, layers, norms and head, without vision and MTP."""
        layers = sum(count * layer.num_parameters for layer, count in self.layer_counts())
        return self.embedding_parameters + self.lm_head_parameters + self.final_norm_parameters + layers

    @property
    def num_active_parameters(self) -> int:
        """Parameters that one token uses: all but n-gram tables and the experts that it is not routed to."""
        idle = self.ngram_parameters
        for layer, count in self.layer_counts():
            if layer.experts is not None:
                share = 1 - layer.experts.experts_per_token / layer.experts.num_experts
                routed = sum(x.num_parameters for x in layer.linears if x.group is TensorGroup.EXPERT)
                idle += round(count * routed * share)
        return self.num_parameters - idle

    @property
    def longest_context(self) -> int:
        """Longest context that the model is published for, with the RoPE scaling of its card. [tokens]."""
        return max(self.max_position_embeddings, self.extended_context or 0)

    @property
    def architecture_is_known(self) -> bool:
        """Whether the config names an architecture that Headroom knows, rather than being read as a Llama's."""
        return not any(name.startswith("model_type:") for name in self.estimated_fields)

    @property
    def is_moe(self) -> bool:
        """Whether any layer routes tokens to experts."""
        return any(layer.experts is not None for layer in self.layer_kinds)

    @property
    def has_grouped_output(self) -> bool:
        """Whether attention projects its output by groups of heads, each with a matrix of its own."""
        return any(linear.is_grouped_output for layer in self.layer_kinds for linear in layer.linears)

    @property
    def ngrams_enter_layers(self) -> bool:
        """Whether layers look up n-gram rows, instead of adding them to the input embedding."""
        return any(layer.mixer.side_channels for layer in self.layer_kinds)


@lru_cache(maxsize=64)
def with_media(model: ModelShape, media: str) -> ModelShape:
    """The model as an engine loads it for these media.

    Parameters
    ----------
    model : ModelShape
        With or without a vision tower.
    media : str
        "auto" = all that the model accepts; "images" = no video (`limit_mm_per_prompt` with video 0); "none" = text
        only, without the tower (`language_model_only`, or all limits 0).

    Returns
    -------
    ModelShape
        The same object where nothing changes.

    Raises
    ------
    InvalidInput
        For any other value.
    """
    require_choice("media", media, MEDIA)
    if media == "none" and model.vision_parameters:
        known = tuple(name for name in model.estimated_fields if not name.startswith("vision"))
        text = replace(model, vision_parameters=0, vision_tower=None, image_tokens=0, encoder_splits=())
        return replace(text, estimated_fields=known)
    if media == "images" and model.vision_tower is not None and model.vision_tower.videos_as_images:
        return replace(model, vision_tower=replace(model.vision_tower, videos_as_images=False))
    return model


@lru_cache(maxsize=64)
def with_state_dtype(model: ModelShape, dtype: str) -> ModelShape:
    """The model with its recurrent states in another type.

    Parameters
    ----------
    model : ModelShape
        Its config states a type (mamba_ssm_dtype).
    dtype : str
        "auto" keeps it; float32, bfloat16 and float16 as in vLLM's mamba_ssm_cache_dtype and SGLang's mamba_ssm_dtype.

    Returns
    -------
    ModelShape
        The same object where nothing changes.

    Raises
    ------
    InvalidInput
        For any other type.
    """
    require_choice("state_dtype", dtype, STATE_DTYPES)
    if dtype == "auto" or not any(layer.mixer.is_state for layer in model.layer_kinds):
        return model
    size = 4 if dtype == "float32" else 2
    kinds = tuple(
        replace(layer, mixer=replace(layer.mixer, state_element_bytes=size)) if layer.mixer.is_state else layer
        for layer in model.layer_kinds
    )
    return replace(model, layer_kinds=kinds)
