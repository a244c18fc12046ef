"""All forms of a plan."""

import pytest

from planner.deploy.artifacts import COMMANDS, artifact, artifacts, formats
from planner.errors import Infeasible, InvalidInput

from .cases import planned


def test_a_plan_has_its_engines_command_and_every_file():
    found = artifacts(planned())
    assert [item.format for item in found] == ["vllm", *(name for name in formats() if name not in COMMANDS.values())]
    assert all(item.text and not item.problem for item in found)
    assert len({item.filename for item in found}) == len(found)


def test_one_form_is_the_same_text():
    every = {item.format: item.text for item in artifacts(planned())}
    for name in ("vllm", "k8s", "client"):
        assert artifact(planned(), name).text == every[name]


def test_another_engines_command_needs_another_plan():
    with pytest.raises(InvalidInput, match="plan with engine = sglang"):
        artifact(planned(), "sglang")
    with pytest.raises(InvalidInput, match="one of vllm, docker-compose"):
        artifact(planned(), "helm")


def test_a_plan_that_does_not_start_has_no_command():
    with pytest.raises(Infeasible, match="weights"):
        artifacts(planned(model="deepseek-ai/DeepSeek-V3"))


def test_what_the_command_cannot_say_stands_above_it():
    text = artifacts(planned(kv_cache_dtype="q8_0"))[0].text
    assert "# NOT AS PLANNED: KV cache = q8_0: vLLM has no cache of this type." in text
    assert "--kv-cache-dtype" not in text


def test_separate_prefill_and_decode_have_no_files_that_serve_them():
    found = {item.format: item for item in artifacts(planned(deployment="disaggregated", num_replicas=None))}
    for name in ("vllm", "docker-compose", "k8s", "kserve", "vllm-bench"):
        assert "connector" in found[name].problem
        assert found[name].text == ""
    assert found["client"].text
