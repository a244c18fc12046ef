"""What a published name says of a checkpoint: the model that it was made of, and the scheme of its weights.

"RedHatAI/Llama-3.3-70B-Instruct-FP8-dynamic" is Llama-3.3-70B-Instruct in FP8 per channel. Rules are rows of
checkpoint_names.csv; ids that no rule can tell are rows of variants.csv.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from planner.tables import read_table

MOST_CHARACTERS = 200
#: words of a scheme, of a file format or of a packing tool, each behind a separator
_SCHEME = re.compile(
    r"[-_.:](?:"
    r"(?:ud[-_])?(?:i?q\d(?:[-_](?:k(?:[-_](?:xl|l|m|s))?|xxs|xs|nl|[01sm]))?|tq\d(?:[-_]\d)?|bpw|f16|f32)"
    r"|gguf|imatrix|i1"
    r"|quantized|compressed[-_]tensors|ct|qat|unquantized"
    r"|fp8(?:[-_](?:dynamic|block|static|tensor|channel|kv|e4m3))*|float8"
    r"|(?:nv|mx)?fp4(?:[-_](?:v\d|qad|fp8|w4a4|w4a16|fast))*|mxfp8|mxfp6"
    r"|w\d+a\d+(?:fp8)?|int[48](?:[-_]mixed)?(?:[-_]ar)?|\d[-_]?bits?|g(?:s)?\d{2,3}|\d+g|channel"
    r"|awq|gptq(?:model)?|auto-?round|hqq|exl[23]|bnb|nf4|bitsandbytes|unsloth|marlin|kv"
    r"|bf16|fp16|mlx|lhead|preview-quant"
    r")(?![a-z0-9])"
)
#: words that do not change the shape of a model
_ROLE = re.compile(r"[-_](?:instruct|chat|it|hf|base|pt|thinking|reasoning|preview)(?![a-z0-9])")
_MAKER = re.compile(r"^(?:meta|nvidia|qwen_qwen|google_|mistralai_|huihui)[-_]")
#: words of weights edited in place: such checkpoints have the exact total of their model in PyPI llmfit 1.1.17
_EDIT = re.compile(
    r"[-_](?:abliterated|obliterated|uncensored|heretic|derestricted)(?:[-_.]?v?\d(?:\.\d)*)?(?![a-z0-9])"
)


def split_id(name: str) -> tuple[str, str]:
    """Publisher and name of a hub id in small letters; "" for a name without publisher."""
    publisher, _, rest = name.strip().lower().rpartition("/")
    return publisher, rest


def without_scheme(name: str) -> str:
    """The last part of a name in small letters, without words of a scheme and without the ending of a file.

    Parameters
    ----------
    name : str
        "unsloth/Qwen3-8B-GGUF:Q4_K_M", "Qwen3-32B-AWQ".

    Returns
    -------
    str
        "qwen3-8b", "qwen3-32b".
    """
    text = split_id(name)[1].removesuffix(".gguf")
    before = ""
    while before != text:
        before, text = text, _SCHEME.sub("", text)
    return text


def without_edit(name: str) -> str:
    """A name without the words that tell of weights edited in place: "qwen3-8b-abliterated" is "qwen3-8b"."""
    return _EDIT.sub("", name)


def without_maker(name: str) -> str:
    """The last part of a name in small letters without a maker's name in front: Meta-Llama-3.1, NVIDIA-Nemotron."""
    return _MAKER.sub("", split_id(name)[1])


def without_role(name: str) -> str:
    """The last part of a name in small letters without the words that do not change a shape: instruct, chat, it."""
    return _ROLE.sub("", without_maker(name))


@lru_cache(maxsize=1)
def variants() -> dict[str, Mapping[str, str]]:
    """Rows of variants.csv by id in small letters: published ids with the shape of a catalog model."""
    return {row["id"].lower(): row for row in read_table("catalog/variants.csv")}


def listed_weight_dtype(name: str) -> str:
    """Weights of a published id that variants.csv lists with a scheme of its own; "" where it lists none."""
    scheme = variants().get(name.lower(), {}).get("quantization", "")
    return "bf16" if scheme == "none" else scheme


@lru_cache(maxsize=1)
def _rules() -> tuple[tuple[re.Pattern[str], re.Pattern[str], re.Pattern[str], str], ...]:
    return tuple(
        (
            re.compile(row["pattern"]),
            re.compile(row["publisher"]),
            re.compile(row["model_type"]),
            row["quantization"],
        )
        for row in read_table("catalog/checkpoint_names.csv")
    )


def scheme_of(name: str, model_type: str) -> str:
    """Scheme that a published name states.

    Parameters
    ----------
    name : str
        Hub id, tag or file name.
    model_type : str
        Of the model that the checkpoint was made of: makers use one scheme for one family and another for the next.

    Returns
    -------
    str
        A name of quantization.csv; "" where the name states none. Source of each rule: checkpoint_names.csv.
    """
    publisher, text = split_id(name)
    for pattern, makers, families, quantization in _rules():
        if pattern.search(text) and makers.search(publisher) and families.search(model_type):
            return quantization
    return ""
