"""Docker Compose, Kubernetes and KServe files of a plan, from the same command that its shell form has."""

from __future__ import annotations

import math
import re
import shlex
from typing import Any

import yaml

from planner.answer import Plan, serving_replicas
from planner.catalog import EngineImage, engine_image
from planner.deploy.launch import HEAD, Launch, flat
from planner.errors import Infeasible

CACHE = {
    "ollama": "/root/.ollama",
    "tgi": "/data",
    "llamacpp": "/root/.cache/llama.cpp",
}
HUB_CACHE = "/root/.cache/huggingface"
CONFIG_FOLDER = "/etc/headroom"
LONGEST_NAME = 50  # of the 63 characters of a DNS label, with room for what controllers append
LOADING_S = 3600  # a pod may take this long to download and load before it is restarted


def compose(plan: Plan, launch: Launch) -> str:
    """A Docker Compose file for one machine: a service for each replica that it holds.

    Raises
    ------
    Infeasible
        When a replica spans several machines, or no image is known.
    """
    if launch.num_nodes > 1:
        raise Infeasible(f"One replica spans {launch.num_nodes} machines and Docker Compose runs on one.", ())
    image = _image(plan, launch)
    per_replica = plan.scenario.parallelism.gpus_per_replica
    here = max(1, min(plan.num_replicas, plan.gpu.gpus_per_node // per_replica))
    name = resource_name(plan)
    services = {}
    for replica in range(here):
        devices = [str(replica * per_replica + index) for index in range(per_replica)]
        service: dict[str, Any] = {
            "image": image.image,
            **({} if launch.image_runs else {"entrypoint": [_escaped(_executable(launch))]}),
            "command": [_escaped(word) for word in _arguments(launch)],
            "environment": {key: _escaped(value) for key, value in _environment(launch)}
            | {"HF_TOKEN": "${HF_TOKEN:-}"},
            "ports": [f"{launch.port + replica}:{launch.port}"],
            "ipc": "host",
            "volumes": [f"models:{CACHE.get(launch.engine, HUB_CACHE)}"],
            "restart": "unless-stopped",
        }
        _compose_gpus(plan, service, devices)
        if launch.files:
            service["configs"] = [
                {"source": _config(file), "target": f"{CONFIG_FOLDER}/{file}"} for file, _ in launch.files
            ]
        if launch.after:
            service["post_start"] = [{"command": [_escaped(word) for word in words]} for words in launch.after]
        services[name if here == 1 else f"{name}-{replica}"] = service
    body: dict[str, Any] = {"services": services, "volumes": {"models": {}}}
    if launch.files:
        body["configs"] = {_config(file): {"content": _escaped(text)} for file, text in launch.files}
    return _dump(body)


def _compose_gpus(plan: Plan, service: dict[str, Any], devices: list[str]) -> None:
    if plan.gpu.vendor == "AMD":
        service["devices"] = ["/dev/kfd", "/dev/dri"]
        service["environment"]["HIP_VISIBLE_DEVICES"] = ",".join(devices)
        return
    reserved = {"driver": "nvidia", "device_ids": devices, "capabilities": ["gpu"]}
    service["deploy"] = {"resources": {"reservations": {"devices": [reserved]}}}


def kubernetes(plan: Plan, launch: Launch) -> str:
    """Deployment, Service and, for several replicas, HorizontalPodAutoscaler; a LeaderWorkerSet across nodes.

    Raises
    ------
    Infeasible
        When no image is known for the engine on this vendor's GPUs.
    """
    image, name = _image(plan, launch), resource_name(plan)
    documents = [_config_map(name, launch)] if launch.files else []
    if launch.num_nodes > 1:
        return _dump(*documents, _leader_worker_set(plan, launch, image, name), _service(name, launch, leader=True))
    pod = _pod(plan, launch, image, name, _arguments(launch))
    documents.append(
        {
            "apiVersion": "apps/v1",
            "kind": "Deployment",
            "metadata": {"name": name, "labels": {"app": name}},
            "spec": {
                "replicas": plan.num_replicas,
                "selector": {"matchLabels": {"app": name}},
                "template": {"metadata": {"labels": {"app": name}}, "spec": pod},
            },
        }
    )
    documents.append(_service(name, launch))
    return _dump(*documents, *([_autoscaler(plan, image, name)] if scales(plan, launch) else []))


def kserve(plan: Plan, launch: Launch) -> str:
    """A KServe InferenceService with the engine's container as its predictor.

    Raises
    ------
    Infeasible
        When a replica spans several nodes, or no image is known.
    """
    if launch.num_nodes > 1:
        raise Infeasible(
            f"One replica spans {launch.num_nodes} nodes, and a custom predictor of KServe runs on one.",
            ("the Kubernetes file, which uses a LeaderWorkerSet",),
        )
    image, name = _image(plan, launch), resource_name(plan)
    pod = _pod(plan, launch, image, name, _arguments(launch))
    pod["containers"][0]["name"] = "kserve-container"
    predictor = {
        "minReplicas": fewest_replicas(plan),
        "maxReplicas": plan.num_replicas,
        **pod,
    }
    running = running_on_replica(plan)
    if running and plan.num_replicas > 1:
        predictor |= {"scaleMetric": "concurrency", "scaleTarget": running}  # requests at once, of Knative
    service = {
        "apiVersion": "serving.kserve.io/v1beta1",
        "kind": "InferenceService",
        "metadata": {"name": name, "annotations": {"serving.kserve.io/enable-prometheus-scraping": "true"}},
        "spec": {"predictor": predictor},
    }
    return _dump(*([_config_map(name, launch)] if launch.files else []), service)


def _image(plan: Plan, launch: Launch) -> EngineImage:
    found = engine_image(launch.engine, plan.gpu.vendor, launch.version)
    if found is None:
        raise Infeasible(
            f"No container image of {launch.title} is known for {plan.gpu.vendor or 'this'} GPUs.",
            ("the command, in an environment of your own",),
        )
    return found


def resource_name(plan: Plan) -> str:
    """A name that Kubernetes and Compose accept, from the model's."""
    words = re.sub(r"[^a-z0-9]+", "-", plan.model.name.rpartition("/")[2].lower()).strip("-")
    return (
        (words[:LONGEST_NAME].strip("-") or "model") if words[:1].isalpha() else f"m-{words}"[:LONGEST_NAME].strip("-")
    )


def fewest_replicas(plan: Plan) -> int:
    """Replicas that the mean rate needs by the plan's own share at the peak, spares included."""
    serving = serving_replicas(plan)
    mean = math.ceil(serving / plan.scenario.peak_factor) if plan.scenario.is_open_loop else serving
    return min(plan.num_replicas, mean + plan.num_replicas - serving)


def running_on_replica(plan: Plan) -> int:
    """Sequences that run at once on one serving replica at the planned peak; 0 when nothing was simulated."""
    if plan.result is None or not len(plan.result.replica):
        return 0
    return max(1, math.ceil(plan.result.mean_running / (int(plan.result.replica.max()) + 1)))


def _executable(launch: Launch) -> str:
    return "python3" if launch.program[0] == "python" else launch.program[0]  # images have no `python`


def _arguments(launch: Launch) -> tuple[str, ...]:
    return (*_with_config(launch, (*launch.program[1:], *flat(launch.options))), *flat(launch.in_container))


def _with_config(launch: Launch, words: tuple[str, ...]) -> tuple[str, ...]:
    names = {name for name, _ in launch.files}
    return tuple(f"{CONFIG_FOLDER}/{word}" if word in names else word for word in words)


def _environment(launch: Launch) -> tuple[tuple[str, str], ...]:
    return (*launch.env, *launch.container_env)


def _config(file: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", file.lower()).strip("-")


def _escaped(text: str) -> str:
    """Compose replaces $NAME in every value; $$ is a dollar sign."""
    return text.replace("$", "$$")


def _argument(text: str) -> str:
    """Kubernetes replaces $(NAME) in arguments; $$( is the plain text."""
    return text.replace("$(", "$$(")


def _pod(plan: Plan, launch: Launch, image: EngineImage, name: str, arguments: tuple[str, ...]) -> dict[str, Any]:
    gpus = plan.scenario.parallelism.gpus_per_replica // launch.num_nodes
    probe = {"httpGet": {"path": launch.health_path, "port": launch.port}}
    container: dict[str, Any] = {
        "name": "server",
        "image": image.image,
        **({} if launch.image_runs else {"command": [_executable(launch)]}),
        "args": [_argument(word) for word in arguments],
        "env": [
            {"name": "HF_TOKEN", "valueFrom": {"secretKeyRef": {"name": "hf-token", "key": "token", "optional": True}}},
            *({"name": key, "value": _argument(value)} for key, value in _environment(launch)),
        ],
        "ports": [{"containerPort": launch.port, "name": "http"}],
        "resources": {"limits": {image.device: str(gpus)}, "requests": {image.device: str(gpus)}},
        "startupProbe": {**probe, "periodSeconds": 10, "failureThreshold": LOADING_S // 10},
        "readinessProbe": {**probe, "periodSeconds": 10},
        "volumeMounts": [
            {"name": "models", "mountPath": CACHE.get(launch.engine, HUB_CACHE)},
            {"name": "shared-memory", "mountPath": "/dev/shm"},
        ],
    }
    volumes: list[dict[str, Any]] = [
        {"name": "models", "emptyDir": {}},
        {"name": "shared-memory", "emptyDir": {"medium": "Memory"}},
    ]
    if launch.files:
        container["volumeMounts"].append({"name": "config", "mountPath": CONFIG_FOLDER})
        volumes.append({"name": "config", "configMap": {"name": f"{name}-config"}})
    if launch.after:
        words = " && ".join(shlex.join(command) for command in launch.after)
        wait = f"until {words}; do sleep 5; done"
        container["lifecycle"] = {"postStart": {"exec": {"command": ["sh", "-c", wait]}}}
    return {"containers": [container], "volumes": volumes}


def _config_map(name: str, launch: Launch) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": f"{name}-config"},
        "data": dict(launch.files),
    }


def _service(name: str, launch: Launch, *, leader: bool = False) -> dict[str, Any]:
    selector = {"app": name} | ({"role": "leader"} if leader else {})
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {"selector": selector, "ports": [{"name": "http", "port": 80, "targetPort": launch.port}]},
    }


def scales(plan: Plan, launch: Launch) -> bool:
    """Whether the Kubernetes file has an autoscaler: several replicas, and an engine that shows running requests."""
    image = engine_image(launch.engine, plan.gpu.vendor, launch.version)
    return bool(
        launch.num_nodes == 1 and plan.num_replicas > 1 and image and image.running_metric and running_on_replica(plan)
    )


def _autoscaler(plan: Plan, image: EngineImage, name: str) -> dict[str, Any]:
    """Scales from the replicas of the mean rate to those of the peak, on the running requests of each replica."""
    running = running_on_replica(plan)
    return {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": name},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": name},
            "minReplicas": fewest_replicas(plan),
            "maxReplicas": plan.num_replicas,
            "metrics": [
                {
                    "type": "Pods",
                    "pods": {
                        "metric": {"name": re.sub(r"\W", "_", image.running_metric)},
                        "target": {"type": "AverageValue", "averageValue": str(running)},
                    },
                }
            ],
        },
    }


def _leader_worker_set(plan: Plan, launch: Launch, image: EngineImage, name: str) -> dict[str, Any]:
    leader = _pod(plan, launch, image, name, ())
    leader["containers"][0]["args"] = _node_arguments(launch, 0)
    worker = _pod(plan, launch, image, name, ())
    container = worker["containers"][0]
    del container["readinessProbe"], container["startupProbe"], container["ports"]
    container["args"] = _node_arguments(launch, 1)
    if any(flag == "--data-parallel-start-rank" for flag, _ in launch.node_options[1]):
        container["command"], container["args"] = ["sh", "-c"], [_worker_script(launch)]
    return {
        "apiVersion": "leaderworkerset.x-k8s.io/v1",
        "kind": "LeaderWorkerSet",
        "metadata": {"name": name, "labels": {"app": name}},
        "spec": {
            "replicas": plan.num_replicas,
            "leaderWorkerTemplate": {
                "size": launch.num_nodes,
                "restartPolicy": "RecreateGroupOnPodRestart",
                "leaderTemplate": {"metadata": {"labels": {"app": name, "role": "leader"}}, "spec": leader},
                "workerTemplate": {"metadata": {"labels": {"app": name, "role": "worker"}}, "spec": worker},
            },
        },
    }


def _node_arguments(launch: Launch, node: int) -> list[str]:
    """Arguments of the leader or of a worker; the controller sets the leader's address and the worker's index."""
    options = [
        (flag, "$(LWS_WORKER_INDEX)" if node and flag == "--node-rank" else value)
        for flag, value in launch.node_options[node]
    ]
    words = [value.replace(HEAD, "$(LWS_LEADER_ADDRESS)") for value in flat(options)]
    return [*(_argument(word) for word in _arguments(launch)), *words]


def _worker_script(launch: Launch) -> str:
    """A worker's command where its first rank depends on its index."""
    each = next(value for flag, value in launch.node_options[0] if flag == "--data-parallel-size-local")
    words = shlex.join([_executable(launch), *_arguments(launch)])
    return (
        f"exec {words} --data-parallel-size-local {each} --data-parallel-address $LWS_LEADER_ADDRESS "
        f"--data-parallel-start-rank $((LWS_WORKER_INDEX * {each})) --headless"
    )


class _Plain(yaml.SafeDumper):
    """Writes a repeated value again in place of a reference to it."""

    def ignore_aliases(self, data: Any) -> bool:
        return True


def _dump(*documents: dict[str, Any]) -> str:
    return yaml.dump_all(documents, Dumper=_Plain, sort_keys=False, allow_unicode=True, width=120)
