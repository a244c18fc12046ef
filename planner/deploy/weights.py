"""Which checkpoint holds the planned weights, and what an engine must be told to load them so."""

from __future__ import annotations

from dataclasses import dataclass

from planner.answer import Plan
from planner.catalog import (
    find_model_id,
    get_model,
    gguf_repository,
    ollama_tag,
    plain_model_id,
    published_formats,
)
from planner.deploy.launch import Options
from planner.deploy.settings import release
from planner.model import resolve_scheme, scheme
from planner.scenario import CONFIG, CUSTOM

PLACEHOLDER = "YOUR_MODEL"
DTYPES = {"bf16": "bfloat16", "fp16": "float16", "fp32": "float32"}
GGUF_16 = {"bf16": "BF16", "fp16": "F16", "gguf_f16": "F16"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Weights:
    """A checkpoint to load: its id, the type or scheme to ask for, and what the reader has to know.

    `dtype` is set where the plan asks for a 16 or 32 bit type, `convert` where the engine has to quantise while it
    loads, since the catalog knows no checkpoint in that format.
    """

    id: str
    dtype: str = ""  # bfloat16, float16, float32
    convert: str = ""  # a name of quantization.csv
    note: str = ""


def started_options(plan: Plan, command: str, title: str) -> tuple[Options, Weights]:
    """The options of a command to add to, with what the reader must know of the weights, and the weights.

    Parameters
    ----------
    plan : Plan
        Whose engine's release decides which flags there are.
    command, title : str
        The command as engine_flags.csv has it, and the engine as the sentences call it.
    """
    options, weights = Options(command, title, release(plan)), planned_weights(plan)
    options.notes += [weights.note] if weights.note else []
    return options, weights


def plain_awq_option(plan: Plan, options: Options) -> None:
    """Ask for AWQ's own kernels, which an engine refuses for any other weights."""
    if resolve_scheme(plan.scenario.published_shape, plan.scenario.weight_dtype).name == "awq_int4":
        options.add("--quantization", "awq")
    else:
        options.unmet.append("AWQ without Marlin: the planned weights are not in AWQ.")


def planned_weights(plan: Plan) -> Weights:
    """The checkpoint of the planned weight format, as the hub calls it."""
    scenario = plan.scenario
    chosen = resolve_scheme(scenario.published_shape, scenario.weight_dtype)
    if scenario.model in (CONFIG, CUSTOM):
        note = f"{PLACEHOLDER} stands for the folder or hub id of the model that you described."
        dtype = DTYPES.get(chosen.name, "") if scenario.weight_dtype != "auto" else ""
        return Weights(id=PLACEHOLDER, dtype=dtype, convert="" if chosen.is_native else chosen.name, note=note)
    own = find_model_id(scenario.model) or scenario.model
    on_hub = own if "/" in own else plain_model_id(own)
    published = get_model(on_hub).quantization
    if scenario.weight_dtype == "auto" and on_hub == own:
        return Weights(id=on_hub)
    if chosen.is_native:
        return _unquantised(on_hub, published, chosen.name)
    if chosen.name == published:
        return Weights(id=on_hub)
    found = next((item for item in published_formats(on_hub) if item.quantization == chosen.name), None)
    if found is not None:
        note = f"{found.checkpoint} holds {on_hub} in {chosen.label} (source: {found.source})."
        return Weights(id=found.checkpoint, note=note)
    return Weights(id=plain_model_id(on_hub), convert=chosen.name)


def _unquantised(own: str, published: str, name: str) -> Weights:
    if not published:
        return Weights(id=own, dtype=DTYPES[name])
    plain = plain_model_id(own)
    if plain != own and not get_model(plain).quantization:
        return Weights(id=plain, dtype=DTYPES[name])
    label = scheme(published).label
    return Weights(
        id=own,
        dtype=DTYPES[name],
        note=f"The catalog knows {own} only in {label}; load a checkpoint in {scheme(name).label} in its place.",
    )


def missing_checkpoint(weights: Weights) -> str:
    """What to do where no checkpoint is known and the engine cannot quantise while it loads."""
    label = scheme(weights.convert).label
    return f"The catalog knows no checkpoint of {weights.id} in {label}: put the id of one in its place."


def gguf_file(plan: Plan) -> tuple[str, str, str]:
    """Where llama.cpp finds the planned weights.

    Returns
    -------
    tuple of str
        Repository of GGUF files ("" where the catalog knows none), the file's scheme such as Q4_K_M, and a note.
    """
    scenario = plan.scenario
    chosen = resolve_scheme(scenario.published_shape, scenario.weight_dtype)
    tag = GGUF_16.get(chosen.name) or chosen.name.removeprefix("gguf_").upper()
    note = ""
    if not chosen.name.startswith("gguf_") and chosen.name not in (*GGUF_16, "mxfp4"):
        note = f"llama.cpp reads GGUF files, which do not exist in {chosen.label}: convert the model first."
    repository = "" if scenario.model in (CONFIG, CUSTOM) else gguf_repository(scenario.model)
    return repository, tag, note


def ollama_name(plan: Plan) -> tuple[str, str]:
    """What `ollama pull` takes for the planned weights, and a note."""
    scenario = plan.scenario
    chosen = resolve_scheme(scenario.published_shape, scenario.weight_dtype)
    if scenario.model not in (CONFIG, CUSTOM):
        own = get_model(scenario.model).quantization
        if "/" not in scenario.model and chosen.name == own:
            return scenario.model, ""
        tag = ollama_tag(scenario.model, chosen.name)
        if not tag and chosen.name == get_model(plain_model_id(scenario.model)).quantization:
            tag = ollama_tag(scenario.model, "")
        if tag:
            return tag, ""
    repository, suffix, note = gguf_file(plan)
    if repository:
        return f"hf.co/{repository}:{suffix}", note
    return PLACEHOLDER, note or f"{PLACEHOLDER} stands for the tag or hf.co/… repository of this model in {suffix}."
