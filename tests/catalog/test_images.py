"""Container images."""

from planner.catalog.images import engine_image


def test_the_tag_is_the_release():
    assert engine_image("vllm", "NVIDIA", "0.33.0").image == "vllm/vllm-openai:v0.33.0"
    assert engine_image("vllm", "AMD", "0.33.0").device == "amd.com/gpu"


def test_unknown_vendors_have_none():
    assert engine_image("vllm", "Apple", "0.33.0") is None
