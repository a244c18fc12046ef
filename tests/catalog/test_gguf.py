"""Where GGUF files are."""

from planner.catalog.gguf import gguf_repository, ollama_tag
from planner.catalog.models import find_model_id
from planner.tables import read_table


def test_every_repository_is_of_a_model_of_the_catalog():
    for row in read_table("catalog/gguf_repositories.csv"):
        assert row["source"]
        assert find_model_id(row["model"]) == row["model"]
        assert "gguf" in row["repository"].lower()


def test_a_checkpoint_has_the_files_of_its_model():
    assert gguf_repository("Qwen/Qwen3-8B") == gguf_repository("Qwen/Qwen3-8B-FP8") == "unsloth/Qwen3-8B-GGUF"
    assert gguf_repository("Qwen/Qwen3-32B-AWQ") == gguf_repository("Qwen/Qwen3-32B") != ""


def test_ollama_tags_are_found_by_model_and_scheme():
    assert ollama_tag("Qwen/Qwen3-8B", "gguf_q4_k_m") == "qwen3:8b"
    assert ollama_tag("Qwen/Qwen3-8B", "gguf_q8_0") == ""
