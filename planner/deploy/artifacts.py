"""Every form in which a plan can be carried out, each as a text to copy or a file to download."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from planner.answer import Plan
from planner.deploy.client import openai_client
from planner.deploy.engines import launch
from planner.deploy.launch import Launch, comment
from planner.deploy.load_test import LoadTest, Predict, guidellm, load_test, predicted, vllm_bench
from planner.deploy.manifests import compose, kserve, kubernetes, scales
from planner.errors import Infeasible, InvalidInput
from planner.scenario import to_query
from planner.units import counted

#: format of an engine's own command, by `Launch.engine`
COMMANDS = {
    "vllm": "vllm",
    "sglang": "sglang",
    "trtllm": "tensorrt-llm",
    "llamacpp": "llama-server",
    "ollama": "ollama",
    "tgi": "tgi",
}
#: format, title, file, language
FILES = (
    ("docker-compose", "Docker Compose", "compose.yaml", "yaml"),
    ("k8s", "Kubernetes", "kubernetes.yaml", "yaml"),
    ("kserve", "KServe", "kserve.yaml", "yaml"),
    ("client", "OpenAI client", "client.py", "python"),
    ("vllm-bench", "Load test: vllm bench serve", "load_test.sh", "bash"),
    ("guidellm", "Load test: GuideLLM", "load_test_guidellm.sh", "bash"),
)


SERVING = ("docker-compose", "k8s", "kserve", "vllm-bench", "guidellm")  # what starts the service, or foretells it
APART = (
    "Prefill and decode on separate replicas need a connector and a router of the engine's own, which Headroom does "
    "not write; the plan's numbers of replicas stand."
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Artifact:
    """One form of a plan: `text` to copy, or `problem` where the plan cannot take this form."""

    format: str
    title: str
    filename: str
    language: str
    text: str = ""
    problem: str = ""


def formats() -> tuple[str, ...]:
    """Names of all forms; of the engines' commands a plan has that of its own engine."""
    return (*COMMANDS.values(), *(name for name, *_ in FILES))


def formats_of(plan: Plan) -> tuple[tuple[str, str], ...]:
    """The forms of a plan as (format, title): its engine's command, then the files.

    Raises
    ------
    InvalidInput
        When its engine is a scheduling policy without a server.
    """
    started = launch(plan)
    return ((COMMANDS[started.engine], _title(started)), *((name, title) for name, title, *_ in FILES))


def artifacts(plan: Plan) -> tuple[Artifact, ...]:
    """Every form of a plan, its engine's command first.

    Parameters
    ----------
    plan : Plan
        A whole plan, whose engine starts.

    Returns
    -------
    tuple of Artifact
        Those that the plan cannot take say why.

    Raises
    ------
    Infeasible
        When the plan's engine does not start.
    InvalidInput
        When its engine is a scheduling policy without a server.
    """
    started = _started(plan)
    test = cache(lambda: load_test(plan))
    names = (COMMANDS[started.engine], *(name for name, *_ in FILES))
    return tuple(_made(plan, started, name, test) for name in names)


def artifact(plan: Plan, wanted: str, predict: Predict = predicted) -> Artifact:
    """One form of a plan.

    Parameters
    ----------
    plan : Plan
        A whole plan, whose engine starts.
    wanted : str
        One of `formats`.
    predict : callable, optional
        What predicts the load test, where that is to happen elsewhere.

    Raises
    ------
    Infeasible
        When the plan's engine does not start.
    InvalidInput
        When there is no such form, or it is the command of another engine.
    """
    own = COMMANDS[launch(plan).engine]
    if wanted not in formats():
        raise InvalidInput("--format", wanted, "one of " + ", ".join((own, *(name for name, *_ in FILES))))
    if wanted in COMMANDS.values() and wanted != own:
        raise InvalidInput(
            "--format", wanted, f"{own}, the engine of this plan; for a {wanted} command, plan with engine = {wanted}"
        )
    return _made(plan, _started(plan), wanted, lambda: load_test(plan, predict))


def _started(plan: Plan) -> Launch:
    started = launch(plan)
    if not plan.fits:
        raise Infeasible(plan.memory.refusal, plan.memory.remedies)
    return started


def _title(started: Launch) -> str:
    return " ".join(started.program[:2]) if started.engine == "vllm" else started.title


def _made(plan: Plan, started: Launch, name: str, test: Callable[[], LoadTest]) -> Artifact:
    apart = APART if plan.pools is not None else ""
    if name == COMMANDS[started.engine]:
        text = "" if apart else _command(plan, started)
        title = _title(started)
        return Artifact(format=name, title=title, filename="serve.sh", language="bash", text=text, problem=apart)
    _, title, filename, language = next(item for item in FILES if item[0] == name)
    if apart and name in SERVING:
        return Artifact(format=name, title=title, filename=filename, language=language, text="", problem=apart)
    makers: dict[str, Callable[[], str]] = {
        "docker-compose": lambda: _header(plan, started, _compose_note(plan)) + compose(plan, started),
        "k8s": lambda: _header(plan, started, _kubernetes_notes(plan, started)) + kubernetes(plan, started),
        "kserve": lambda: _header(plan, started, ()) + kserve(plan, started),
        "client": lambda: openai_client(plan, started),
        "vllm-bench": lambda: vllm_bench(test(), started),
        "guidellm": lambda: guidellm(test(), started),
    }
    try:
        text, problem = makers[name](), ""
    except Infeasible as error:
        text, problem = "", str(error)
    return Artifact(format=name, title=title, filename=filename, language=language, text=text, problem=problem)


def _kubernetes_notes(plan: Plan, started: Launch) -> tuple[str, ...]:
    token = (
        "Put a token for gated models in a secret named hf-token, key token. A PersistentVolumeClaim in place of the "
        "emptyDir named models saves downloads."
    )
    if not scales(plan, started):
        return (token,)
    scaler = "The autoscaler reads the engine's running requests through a Prometheus adapter; without it the fleet "
    return (token, scaler + "is as large as at the planned peak.")


def _compose_note(plan: Plan) -> tuple[str, ...]:
    here = max(1, min(plan.num_replicas, plan.gpu.gpus_per_node // plan.scenario.parallelism.gpus_per_replica))
    if here == plan.num_replicas:
        return ()
    return (f"This file runs {counted(here, 'replica')} on one machine; the plan has {plan.num_replicas:,}.",)


def _command(plan: Plan, started: Launch) -> str:
    count = f"Start {plan.num_replicas:,} of these." if plan.num_replicas > 1 else ""
    return _header(plan, started, (count,) if count else ()) + started.shell() + "\n"


def _header(plan: Plan, started: Launch, notes: tuple[str, ...]) -> str:
    """Comments: the plan, its engine's release, and what the reader has to know."""
    per_replica = plan.scenario.parallelism.gpus_per_replica
    engine = f"{started.title} {started.version}".rstrip()  # llama.cpp has no version that a plan names
    lines = [
        f"{plan.model.name} on {engine}: {counted(plan.num_replicas, 'replica')} of {per_replica} × {plan.gpu.name}",
        f"The plan: python -m planner plan '?{to_query(plan.scenario)}'",
        *notes,
        *started.notes,
        *(f"NOT AS PLANNED: {text}" for text in started.unmet),
    ]
    return "".join(comment(line) + "\n" for line in lines)
