"""Configs of a user against the catalog: new, changed, unchanged, unreadable; totals against files; writing."""

import json
import struct

import pytest

from planner.catalog import models, refresh
from planner.catalog.models import catalog_date, get_model, model_names, stored_entry
from planner.errors import InvalidInput

TINY = {
    "model_type": "llama",
    "num_hidden_layers": 1,
    "hidden_size": 8,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "intermediate_size": 16,
    "vocab_size": 32,
    "max_position_embeddings": 128,
    "torch_dtype": "bfloat16",
    "bos_token_id": 1,
}
#: embedding and head, Q and O, K and V, gate and up and down, three norms
TINY_TOTAL = 2 * 32 * 8 + 2 * 8 * 8 + 2 * 8 * 4 + 3 * 8 * 16 + 3 * 8


def write_config(folder, config):
    folder.mkdir(parents=True)
    (folder / "config.json").write_text(config if isinstance(config, str) else json.dumps(config), encoding="utf-8")
    return folder


def write_tensors(folder, **tensors):
    """A safetensors file of which only the header is there, as no weight is read."""
    header, end = {}, 0
    for name, (dtype, shape) in tensors.items():
        header[name.replace("__", ".")] = {"dtype": dtype, "shape": shape, "data_offsets": [end, end]}
    text = json.dumps(header).encode()
    (folder / "model.safetensors").write_bytes(struct.pack("<Q", len(text)) + text)


def only(sources):
    (finding,) = refresh.findings_of([str(source) for source in sources])
    return finding


@pytest.fixture
def catalog(tmp_path, monkeypatch):
    """A copy of the catalog's file that may be written."""
    copy = tmp_path / "models.json"
    copy.write_text(models._FILE.read_text(encoding="utf-8"), encoding="utf-8")
    caches = (models._file, models._entries, models._variant, models.get_model)
    monkeypatch.setattr(models, "_FILE", copy)
    yield copy
    for cached in caches:
        cached.cache_clear()


def test_a_config_that_says_the_same_is_unchanged(tmp_path):
    folder = write_config(tmp_path / "Qwen" / "Qwen3-8B", stored_entry("Qwen/Qwen3-8B")["config"] | {"use_cache": True})
    finding = only([folder])
    assert (finding.id, finding.state, finding.changes) == ("Qwen/Qwen3-8B", refresh.UNCHANGED, ())


def test_what_changed_is_named_with_both_values(tmp_path):
    config = stored_entry("Qwen/Qwen3-8B")["config"] | {"max_position_embeddings": 131_072}
    finding = only([write_config(tmp_path / "Qwen3-8B", config)])
    assert finding.id == "Qwen/Qwen3-8B"
    assert finding.changes == ("context: 40,960 in the catalog, 131,072 in the config",)


def test_the_hubs_cache_names_the_model(tmp_path):
    folder = write_config(tmp_path / "models--acme--Tiny" / "snapshots" / "0123", TINY)
    assert only([tmp_path]).id == "acme/Tiny"
    assert only([folder]).id == "acme/Tiny"


def test_an_unknown_architecture_says_what_was_assumed(tmp_path):
    folder = write_config(tmp_path / "acme" / "Tiny", TINY | {"model_type": "tinyformer"})
    finding = only([folder.parent.parent])
    assert (finding.id, finding.state) == ("acme/Tiny", refresh.NEW)
    assert finding.assumed == ("model_type: tinyformer is not known, taken as Llama-like",)


@pytest.mark.parametrize(
    ("config", "named"),
    [
        ({"model_type": "llama", "hidden_size": 8}, "num_hidden_layers"),
        (TINY | {"num_key_value_heads": 3}, "num_key_value_heads"),
        (TINY | {"layer_types": ["full_attention"] * 2}, "layer_types"),
        (TINY | {"quantization_config": {"quant_method": "own"}}, "quant_method"),
        ("{", "JSON"),
    ],
)
def test_a_config_that_cannot_be_read_names_the_field(tmp_path, config, named):
    write_config(tmp_path / "bad", config)
    write_config(tmp_path / "good", TINY)
    bad, good = refresh.findings_of([str(tmp_path)])
    assert bad.state == refresh.UNREADABLE and named in bad.problem
    assert good.state == refresh.NEW
    assert refresh.findings_text((bad, good)).endswith("1 new, 0 changed, 0 unchanged, 1 unreadable")


def test_headers_confirm_the_total(tmp_path):
    folder = write_config(tmp_path / "tiny", TINY)
    write_tensors(folder, model__all=("BF16", [TINY_TOTAL]), model__rotary__inv_freq=("F32", [1000]))
    finding = only([folder])
    assert finding.counted == TINY_TOTAL
    assert finding.totals.endswith("and the files agree")


def test_headers_that_disagree_are_told(tmp_path):
    folder = write_config(tmp_path / "tiny", TINY)
    write_tensors(folder, model__all=("BF16", [TINY_TOTAL * 2]))
    assert f"but {TINY_TOTAL * 2:,} in the files (-50.00%)" in only([folder]).totals


def test_packed_weights_are_counted_one_by_one(tmp_path):
    folder = write_config(tmp_path / "tiny", TINY)
    write_tensors(
        folder,
        a__qweight=("I32", [10]),  # eight 4-bit weights each
        a__scales=("F16", [10]),
        b__weight_packed=("U8", [10]),  # two
        b__weight_scale=("F8_E4M3", [10]),
        c__weight=("BF16", [10]),
    )
    assert only([folder]).counted == 80 + 20 + 10


def test_new_and_changed_models_are_written_with_their_source(tmp_path, catalog):
    before = len(model_names())
    folder = write_config(tmp_path / "acme" / "Tiny-X", TINY)
    write_tensors(folder, model__all=("BF16", [TINY_TOTAL]))
    changed = stored_entry("Qwen/Qwen3-8B")["config"] | {"max_position_embeddings": 131_072}
    write_config(tmp_path / "Qwen" / "Qwen3-8B", changed)
    findings = refresh.findings_of([str(tmp_path)])
    assert set(refresh.write_findings(findings, "2027-01-02")) == {"acme/Tiny-X", "Qwen/Qwen3-8B"}
    assert catalog_date() == "2027-01-02"
    assert len(model_names()) == before + 1
    assert get_model("Qwen/Qwen3-8B").max_position_embeddings == 131_072
    tiny = stored_entry("acme/Tiny-X")
    assert "bos_token_id" not in tiny["config"]  # only what changes the model is kept
    assert (tiny["published_parameters"], get_model("acme/Tiny-X").num_parameters) == (TINY_TOTAL, TINY_TOTAL)
    assert tiny["config_source"].startswith("config.json of ")
    assert all(finding.state == refresh.UNCHANGED for finding in refresh.findings_of([str(tmp_path)]))


def test_writing_leaves_other_lines_as_they_were(tmp_path, catalog):
    before = catalog.read_text(encoding="utf-8").splitlines()
    write_config(tmp_path / "acme" / "Tiny-X", TINY)
    refresh.write_findings(refresh.findings_of([str(tmp_path)]), "2027-01-02")
    after = catalog.read_text(encoding="utf-8").splitlines()
    assert [line.rstrip(",") for line in after[1:-2]] == [line.rstrip(",") for line in before[1:-1]]
    assert catalog.read_text(encoding="utf-8").count("Tiny-X") >= 1


def test_nothing_to_compare_is_an_error(tmp_path):
    with pytest.raises(InvalidInput, match=r"config\.json"):
        refresh.findings_of([str(tmp_path)])
    with pytest.raises(InvalidInput, match="owner/name"):
        refresh.findings_of(["no such folder"])


def test_an_id_of_the_hub_is_fetched(monkeypatch):
    monkeypatch.setattr(refresh, "fetch_from_hub", lambda name: json.dumps(TINY))
    monkeypatch.setattr(refresh, "hub_tensors", lambda name: None)
    finding = only(["acme/Tiny-X"])
    assert (finding.state, finding.origin) == (refresh.NEW, "https://huggingface.co/acme/Tiny-X")
