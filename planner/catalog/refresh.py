"""Compare configs that a user points to with the catalog: what is new, what changed, whether the totals agree.

A config.json comes from a folder, or from the hub by id. Where safetensors files lie beside it, their headers say how
many parameters there are, without reading the weights.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from planner.catalog import models
from planner.catalog.hub import HUB_ID, MAX_HUB_BYTES, fetch_from_hub, hub_tensors
from planner.errors import InvalidInput
from planner.model import ESTIMATED_TOWER, ModelShape, model_from_config

if TYPE_CHECKING:
    from huggingface_hub.utils import SafetensorsRepoMetadata

NEW, CHANGED, UNCHANGED, UNREADABLE = "new", "changed", "unchanged", "unreadable"
MOST_CONFIGS = 2000
TOTAL_TOLERANCE = 1e-3
#: what is beside the weights in a checkpoint: scales, zero points, orders, buffers
NO_PARAMETER = re.compile(
    r"scales?(_inv|_2)?$|zeros?$|zero_point$|g_idx$|absmax$|quant_map$|quant_state|weight_shape$|inv_freq$|"
    r"position_ids$|masked_bias$|attn\.bias$",
)
PACKED = re.compile(r"qweight$|weight_packed$|_blocks$|weight$")
TOWER = re.compile(r"visual|vision|vit\.|image|multi_modal")
DRAFT = re.compile(r"(^|\.)(mtp|nextn)")
SECTIONS = ("text_config", "vision_config", "quantization_config")
#: what is compared of two shapes, in words
TRAITS = (
    ("num_layers", "layers"),
    ("hidden_size", "hidden size"),
    ("vocab_size", "vocabulary"),
    ("max_position_embeddings", "context"),
    ("num_parameters", "parameters"),
    ("num_active_parameters", "active parameters"),
    ("vision_parameters", "parameters of the vision tower"),
    ("mtp_parameters", "parameters of draft layers"),
    ("tie_word_embeddings", "tied embeddings"),
    ("quantization", "weight format"),
    ("kv_cache_quantization", "KV cache type"),
    ("native_dtype", "16-bit type"),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One config against the catalog.

    `state` is new, changed, unchanged or unreadable; `changes` say what differs from the catalog, `assumed` what the
    config leaves out, `totals` how the parameters of config, files and catalog compare; `problem` says why a config
    cannot be read. `config` holds the keys that matter, `counted` the parameters in the files (0 = not known).
    """

    id: str
    state: str
    origin: str
    changes: tuple[str, ...] = ()
    assumed: tuple[str, ...] = ()
    totals: str = ""
    problem: str = ""
    counted: int = 0
    config: dict[str, Any] | None = None


def findings_of(sources: Iterable[str]) -> tuple[Finding, ...]:
    """Compare configs with the catalog.

    Parameters
    ----------
    sources : iterable of str
        Folders, searched for config.json, or ids of public models on the hub, which is asked without a token.

    Returns
    -------
    tuple of Finding
        One per config.

    Raises
    ------
    InvalidInput
        When a source is neither a folder with a config.json nor the id of a model that the hub shows.
    """
    found: list[Finding] = []
    for source in sources:
        path = Path(source).expanduser()
        if path.exists():
            found += [_of_folder(folder, path) for folder in _folders(path)]
        elif HUB_ID.fullmatch(source):
            found.append(
                _finding(source, fetch_from_hub(source), hub_tensors(source), f"https://huggingface.co/{source}")
            )
        else:
            raise InvalidInput("FOLDER_OR_ID", source, "a folder with a config.json, or owner/name on the hub")
    return tuple(found)


def write_findings(findings: Iterable[Finding], day: str) -> tuple[str, ...]:
    """Write what is new or changed into the catalog's file.

    Parameters
    ----------
    findings : iterable of Finding
        As `findings_of` gives them.
    day : str
        Date of the catalog from now on: "2026-11-30".

    Returns
    -------
    tuple of str
        Ids that were written.

    Raises
    ------
    OSError
        When the file cannot be written.
    """
    entries = {}
    for finding in findings:
        if finding.state in (NEW, CHANGED) and finding.config is not None:
            entries[finding.id] = _entry(finding)
    if entries:
        models.write_entries(entries, day)
    return tuple(entries)


def findings_text(findings: Iterable[Finding]) -> str:
    """What was found, a few lines per config."""
    lines = []
    for finding in findings:
        lines.append(f"{finding.id}: {finding.state}" + (f" ({finding.problem})" if finding.problem else ""))
        lines += [f"  {change}" for change in finding.changes]
        lines += [f"  assumed: {note}" for note in finding.assumed]
        lines += [f"  {finding.totals}"] if finding.totals else []
    states = Counter(finding.state for finding in findings)
    lines.append(", ".join(f"{states[state]} {state}" for state in (NEW, CHANGED, UNCHANGED, UNREADABLE)))
    return "\n".join(lines)


def _folders(path: Path) -> Iterator[Path]:
    """Folders below this one, or itself, that hold a config.json."""
    files = [path] if path.is_file() else sorted(path.rglob("config.json"))[: MOST_CONFIGS + 1]
    if not files or len(files) > MOST_CONFIGS:
        raise InvalidInput("FOLDER_OR_ID", str(path), f"a folder with 1 to {MOST_CONFIGS:,} files named config.json")
    yield from (file.parent for file in files)


def _of_folder(folder: Path, root: Path) -> Finding:
    file = folder / "config.json"
    if file.stat().st_size > MAX_HUB_BYTES:
        return Finding(id=folder.name, state=UNREADABLE, origin=str(folder), problem="config.json is larger than 2 MB")
    text = file.read_text(encoding="utf-8", errors="replace")
    return _finding(_id_of(folder, root, text), text, _local_tensors(folder), str(folder))


def _id_of(folder: Path, root: Path, text: str) -> str:
    """The id of the model in a folder: from the hub cache's path, else the folders' names, else the config itself."""
    cached = next((part for part in reversed(folder.parts) if part.startswith("models--")), "")
    if cached:
        return cached.removeprefix("models--").replace("--", "/", 1)
    folder = folder.resolve()
    both = f"{folder.parent.name}/{folder.name}"
    known = {*models.model_names(), *models.hub_ids()}
    for name in (both, folder.name):
        found = models.find_model_id(name)
        if found in known or (found and name == folder.name):
            return found
    config = _object(text)
    called = config.get("_name_or_path") if config else None
    if isinstance(called, str) and HUB_ID.fullmatch(called):
        return called
    below = len(folder.parts) - len(root.resolve().parts)
    return both if below >= 2 and HUB_ID.fullmatch(both) else folder.name


def _object(text: str) -> dict[str, Any] | None:
    """The JSON object of a text, None where it is none."""
    try:
        found = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _local_tensors(folder: Path) -> SafetensorsRepoMetadata | None:
    from huggingface_hub import errors, get_local_safetensors_metadata  # noqa: PLC0415 - half a second

    try:
        return get_local_safetensors_metadata(folder)
    except (errors.NotASafetensorsRepoError, errors.SafetensorsParsingError, OSError, ValueError):
        return None


def _finding(name: str, text: str, tensors: SafetensorsRepoMetadata | None, origin: str) -> Finding:
    try:
        shape = model_from_config(text, name)
    except InvalidInput as error:
        return Finding(id=name, state=UNREADABLE, origin=origin, problem=str(error))
    number = counted_parameters(tensors) if tensors is not None else 0
    known = models.find_model_id(name)
    changes = _differences(models.get_model(known), shape) if known else ()
    return Finding(
        id=known or name,
        state=NEW if not known else CHANGED if changes else UNCHANGED,
        origin=origin,
        changes=changes,
        assumed=shape.estimated_fields,
        totals=_totals(shape, tensors, number) if tensors is not None else "",
        counted=number,
        config=_kept(_object(text) or {}, shape),
    )


def _differences(old: ModelShape, new: ModelShape) -> tuple[str, ...]:
    """Where a config differs from the catalog, in words."""
    tower = any(note.startswith(ESTIMATED_TOWER) for note in new.estimated_fields)
    found = []
    for name, words in TRAITS:
        before, after = getattr(old, name), getattr(new, name)
        if name == "vision_parameters" and tower:  # the catalog measures what the config does not say
            continue
        if before != after:
            found.append(f"{words}: {_shown(before)} in the catalog, {_shown(after)} in the config")
    if not found and old.layer_counts() != new.layer_counts():
        found.append("layers differ in kind: attention, windows or experts")
    return tuple(found)


def _shown(value: object) -> str:
    return f"{value:,}" if isinstance(value, int) and not isinstance(value, bool) else str(value) or "none"


def counted_parameters(tensors: SafetensorsRepoMetadata) -> int:
    """Parameters of a checkpoint by its headers: scales and buffers left out, packed weights counted one by one.

    Two 4-bit weights are a byte, eight an int32.
    """
    total = 0
    for file in tensors.files_metadata.values():
        for name, tensor in file.tensors.items():
            if NO_PARAMETER.search(name):
                continue
            packed = bool(PACKED.search(name))
            each = 8 if packed and tensor.dtype == "I32" else 2 if packed and tensor.dtype == "U8" else 1
            total += each * tensor.parameter_count
    return total


def _totals(shape: ModelShape, tensors: SafetensorsRepoMetadata, number: int) -> str:
    """Whether the config gives the parameters that the files hold."""
    names = [name for file in tensors.files_metadata.values() for name in file.tensors]
    total = shape.num_parameters
    parts = ["language model"]
    if any(map(TOWER.search, names)):
        total, parts = total + shape.vision_parameters, [*parts, "vision tower"]
    if any(map(DRAFT.search, names)):
        total, parts = total + shape.mtp_parameters, [*parts, "draft layers"]
    if shape.tie_word_embeddings and any(name.endswith("lm_head.weight") for name in names):
        total, parts = total + shape.vocab_size * shape.hidden_size, [*parts, "a head stored although it is tied"]
    of = " + ".join(parts)
    if not number:
        return "the files hold no weights"
    share = total / number - 1
    if abs(share) < TOTAL_TOLERANCE:
        return f"parameters: {total:,} by the config ({of}), and the files agree"
    return f"parameters: {total:,} by the config ({of}), but {number:,} in the files ({share:+.2%})"


def _kept(config: dict[str, Any], shape: ModelShape) -> dict[str, Any]:
    """The keys of a config that change its model."""
    kept = dict(config)
    for name in list(kept):
        if not _changes(shape, {key: value for key, value in kept.items() if key != name}):
            del kept[name]
    for section in SECTIONS:
        if isinstance(kept.get(section), dict):
            for name in list(kept[section]):
                less = {key: value for key, value in kept[section].items() if key != name}
                if not _changes(shape, kept | {section: less}):
                    kept[section] = less
    return kept


def _changes(shape: ModelShape, less: dict[str, Any]) -> bool:
    """Whether a config with less in it makes another model, or none."""
    try:
        return model_from_config(less, shape.name) != shape
    except InvalidInput:
        return True


def _entry(finding: Finding) -> dict[str, Any]:
    """Entry of the catalog for a finding; what the config does not say stays as it was."""
    empty: dict[str, Any] = {"licence": "", "source": "", "published_parameters": None, "published_source": ""}
    entry = {"id": finding.id} | empty | models.stored_entry(finding.id)
    entry |= {"config": finding.config, "config_source": f"config.json of {finding.origin}"}
    entry["source"] = entry["source"] or finding.origin
    recalled = set(entry.pop("recalled", ())) - {"config", "vision_config"}
    if finding.counted:
        entry |= {"published_parameters": finding.counted, "published_source": "headers of its safetensors files"}
        recalled -= {"published_parameters"}
    return entry | ({"recalled": sorted(recalled)} if recalled else {}) | {"note": entry.get("note", "")}
