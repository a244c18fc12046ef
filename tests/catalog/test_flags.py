"""Flags by release."""

from planner.catalog.flags import flags_of


def test_flags_come_and_go_with_releases():
    # vLLM: --speculative-config replaced --speculative-model in 0.8.3; --kv-offloading-size came with 0.11.1.
    assert "--speculative-model" in flags_of("vllm serve", "0.8.2")
    assert "--speculative-model" not in flags_of("vllm serve", "0.8.3")
    assert "--kv-offloading-size" not in flags_of("vllm serve", "0.11.0")
    assert "--kv-offloading-size" in flags_of("vllm serve", "")


def test_every_name_of_a_flag_finds_it():
    flag = flags_of("vllm serve")["--tensor-parallel-size"]
    assert flags_of("vllm serve")["-tp"] is flag
    assert (flag.kind, flag.default) == ("int", "1")
    assert flag.source.startswith("https://")


def test_a_command_without_flags_is_empty():
    assert flags_of("cat") == {}
