"""Settings that no flag says."""

from planner.deploy.settings import counted_on, release, unmet_settings

from .cases import sized


def test_the_release_is_named_in_full():
    assert release(sized(engine="vllm-0.19")) == "0.19.1"
    assert release(sized(engine_version="0.30.0")) == "0.30.0"


def test_only_what_differs_and_is_not_told_is_unmet():
    plan = sized(engine="tgi", block_size=32, max_num_seqs=8)
    assert unmet_settings(plan, ("max_num_seqs",), "TGI") == ["KV block size = 32 tokens: TGI has no flag for it."]


def test_defaults_that_the_user_set_are_not_counted_on():
    assert counted_on([("--a", None, 0.9), ("--b", 5, 5)]) == [
        "Left at the engine's defaults, which the plan counts on: --a 0.9."
    ]
    assert counted_on([("--b", 5, 5)]) == []
