"""Compose, Kubernetes and KServe files against the published field names and types."""

import re
import shlex

import pytest
import yaml

from planner.deploy.engines import launch
from planner.deploy.manifests import (
    compose,
    fewest_replicas,
    kserve,
    kubernetes,
    resource_name,
    running_on_replica,
    scales,
)
from planner.errors import Infeasible

from .cases import misfits, planned

OBJECTS = {
    "Deployment": "V1Deployment",
    "Service": "V1Service",
    "HorizontalPodAutoscaler": "V2HorizontalPodAutoscaler",
    "ConfigMap": "V1ConfigMap",
    "LeaderWorkerSet": "LeaderWorkerSet",
    "InferenceService": "V1beta1InferenceService",
}
VERSIONS = {
    "Deployment": "apps/v1",
    "Service": "v1",
    "HorizontalPodAutoscaler": "autoscaling/v2",
    "ConfigMap": "v1",
    "LeaderWorkerSet": "leaderworkerset.x-k8s.io/v1",
    "InferenceService": "serving.kserve.io/v1beta1",
}
PLANS = {
    "vllm": {"users": 3000},
    "sglang": {"engine": "sglang", "tensor_parallel_size": 2, "users": 2000},
    "trtllm": {"engine": "tensorrt-llm", "kv_cache_dtype": "fp8"},
    "ollama": {"engine": "ollama", "weight_dtype": "gguf_q4_k_m", "users": 5},
    "llama-server": {"engine": "llama-server", "weight_dtype": "gguf_q4_k_m", "users": 5},
    "tgi": {"engine": "tgi"},
    "amd": {"gpu": "MI300X"},
    "two nodes": {"model": "deepseek-ai/DeepSeek-V3", "tensor_parallel_size": 8, "pipeline_parallel_size": 2},
    "data parallel": {
        "model": "deepseek-ai/DeepSeek-V3",
        "gpu": "H200 SXM",
        "attention_data_parallel_size": 16,
        "expert_parallel": True,
    },
}


def documents(text):
    return [item for item in yaml.safe_load_all(text) if item]


@pytest.mark.parametrize("name", PLANS)
def test_kubernetes_files_have_only_fields_of_their_objects(name):
    plan = planned(**PLANS[name])
    found = documents(kubernetes(plan, launch(plan)))
    for item in found:
        assert item["apiVersion"] == VERSIONS[item["kind"]]
        assert misfits(item, OBJECTS[item["kind"]], item["kind"]) == []
    kinds = [item["kind"] for item in found]
    assert "Service" in kinds
    assert ("HorizontalPodAutoscaler" in kinds) == scales(plan, launch(plan))
    if "Deployment" in kinds:
        whole = next(item for item in found if item["kind"] == "Deployment")
        assert whole["spec"]["replicas"] == plan.num_replicas


@pytest.mark.parametrize("name", [name for name in PLANS if name not in ("two nodes", "data parallel")])
def test_compose_and_kserve_files_have_only_fields_of_their_objects(name):
    plan = planned(**PLANS[name])
    assert misfits(yaml.safe_load(compose(plan, launch(plan))), "Compose", "compose") == []
    for item in documents(kserve(plan, launch(plan))):
        assert misfits(item, OBJECTS[item["kind"]], item["kind"]) == []


@pytest.mark.parametrize("name", ["vllm", "sglang", "trtllm"])
def test_a_container_runs_the_command_of_the_shell(name):
    plan = planned(**PLANS[name])
    started = launch(plan)
    container = documents(kubernetes(plan, started))[-2 if scales(plan, started) else 0]
    pods = [item for item in documents(kubernetes(plan, started)) if item["kind"] == "Deployment"]
    container = pods[0]["spec"]["template"]["spec"]["containers"][0]
    words = [re.sub("^/etc/headroom/", "", word) for word in container["args"]]
    assert words[: len(started.words()) - 1] == list(started.words()[1:])
    gpus = str(plan.scenario.parallelism.gpus_per_replica)
    assert container["resources"]["limits"] == {"nvidia.com/gpu": gpus}


def test_the_shell_command_is_one_of_bash():
    plan = planned(**PLANS["sglang"])
    assert tuple(shlex.split(launch(plan).shell().replace("\\\n", ""))) == launch(plan).words()


def test_the_autoscaler_stays_between_the_mean_and_the_peak():
    # Peak ÷ mean is 2 in the default scenario: half of the serving replicas hold the mean rate.
    plan = planned(users=6000)
    item = next(x for x in documents(kubernetes(plan, launch(plan))) if x["kind"] == "HorizontalPodAutoscaler")
    assert item["spec"]["maxReplicas"] == plan.num_replicas > 1
    assert item["spec"]["minReplicas"] == fewest_replicas(plan) == -(-plan.num_replicas // 2)
    assert int(item["spec"]["metrics"][0]["pods"]["target"]["averageValue"]) == running_on_replica(plan)


def test_hostile_names_stay_text():
    plan = planned(model="$(id)${HOME}/Llama-3.1-8B-Instruct-FP8")
    started = launch(plan)
    pod = documents(kubernetes(plan, started))[0]["spec"]["template"]["spec"]["containers"][0]
    assert pod["args"][1] == "$$(id)${HOME}/Llama-3.1-8B-Instruct-FP8"  # Kubernetes replaces only $(NAME)
    service = next(iter(yaml.safe_load(compose(plan, started))["services"].values()))
    assert service["command"][1] == "$$(id)$${HOME}/Llama-3.1-8B-Instruct-FP8"  # Compose replaces $NAME and ${NAME}


def test_names_are_dns_labels():
    for model in ("meta-llama/Llama-3.1-8B-Instruct", "01-ai/Yi-1.5-34B", "Qwen/QwQ-32B"):
        name = resource_name(planned(model=model, max_model_len=2048, tensor_parallel_size=2))
        assert re.fullmatch(r"[a-z]([-a-z0-9]*[a-z0-9])?", name)
        assert len(name) <= 63


def test_what_cannot_run_so_says_why():
    plan = planned(**PLANS["two nodes"])
    for make in (compose, kserve):
        with pytest.raises(Infeasible, match="spans 2"):
            make(plan, launch(plan))
    gaudi = planned(gpu="Gaudi 2")
    with pytest.raises(Infeasible, match="No container image of vLLM is known for Intel"):
        kubernetes(gaudi, launch(gaudi))
