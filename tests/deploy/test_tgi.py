"""TGI's launcher."""

from planner.deploy.tgi import tgi_launch

from .cases import sized


def test_context_and_shards():
    words = tgi_launch(sized(engine="tgi", tensor_parallel_size=2, kv_cache_dtype="fp8")).words()
    pairs = dict(zip(words[1::2], words[2::2], strict=True))
    assert pairs == {
        "--model-id": "meta-llama/Llama-3.1-8B-Instruct",
        "--max-input-tokens": "8191",
        "--max-total-tokens": "8192",
        "--num-shard": "2",
        "--kv-cache-dtype": "fp8_e4m3fn",
    }


def test_what_tgi_cannot_do_is_named():
    assert any("Pipeline parallel" in text for text in tgi_launch(sized(engine="tgi", pipeline_parallel_size=2)).unmet)
