"""The memory that a start-up log prints, put into a plan in place of the estimate."""

from __future__ import annotations

from planner.answer import size
from planner.errors import InvalidInput
from planner.model import resolve_scheme
from planner.reading.reading import Reading
from planner.scenario import MEMORY_PARTS, PRINTED, Scenario, fingerprint

#: figure of a log → field of the scenario
FIGURES = {
    "weights_gib_per_gpu": "printed_weights_gib",
    "activation_peak_gib": "printed_activation_gib",
    "cuda_graph_gib": "printed_graphs_gib",
    "available_kv_gib": "printed_kv_gib",
    "kv_tokens": "printed_kv_tokens",
}
#: field that must be as in the log → name under which a log states it
SAME = {
    "tensor_parallel_size": "tensor_parallel_size",
    "pipeline_parallel_size": "pipeline_parallel_size",
    "attention_data_parallel_size": "data_parallel_size",
    "expert_parallel": "enable_expert_parallel",
    "gpu_memory_utilization": "gpu_memory_utilization",
    "max_model_len": "max_model_len",
}


def prints_memory(reading: Reading) -> bool:
    """Whether a file holds figures of a start that a plan can take over."""
    return reading.scenario is not None and any(reading.measured.get(name, 0.0) > 0 for name in FIGURES)


def without_printed(scenario: Scenario) -> Scenario:
    """The scenario with the estimate of its memory."""
    return scenario.replace(**dict.fromkeys(PRINTED.values()), printed_of="")


def with_printed(reading: Reading, plan: Scenario | None = None) -> Scenario:
    """A plan with the memory that its engine printed.

    Parameters
    ----------
    reading : Reading
        Of a start-up log.
    plan : Scenario, optional
        The plan, which must have the log's deployment; None: the log's own.

    Returns
    -------
    Scenario
        The plan with the printed figures and the fingerprint of the deployment that they belong to.

    Raises
    ------
    InvalidInput
        When the log prints no memory, or names the field in which the plan differs from the log.
    """
    if reading.scenario is None or not prints_memory(reading):
        raise InvalidInput("file", reading.problem or reading.kind, "a start-up log with the memory that it found")
    made = without_printed(plan or reading.scenario)
    _check_same(made, reading, reading.scenario)
    figures = {field: reading.measured[name] for name, field in FIGURES.items() if reading.measured.get(name, 0.0) > 0}
    if "printed_kv_tokens" in figures:
        figures["printed_kv_tokens"] = int(figures["printed_kv_tokens"])
    return made.replace(**figures, printed_of=fingerprint(made, MEMORY_PARTS))


def _check_same(plan: Scenario, reading: Reading, log: Scenario) -> None:
    """Raise with the field in which a plan differs from what a log states."""
    stated = {item.name for item in reading.understood}
    unstated = {item.text.partition(" ")[0] for item in reading.not_understood if not item.line}
    pairs: list[tuple[str, object, object]] = [
        ("engine", plan.engine_settings.family, log.engine_settings.family),
        *((name, _value(plan, name), _value(log, name)) for name, said in SAME.items() if said in stated),
    ]
    if "GPU" not in unstated:
        pairs.insert(0, ("gpu", plan.gpu, log.gpu))
    if "model" not in unstated:
        pairs = [("model", plan.model, log.model), ("weight_dtype", _scheme(plan), _scheme(log)), *pairs]
    for name, own, other in pairs:
        if own != other:
            raise InvalidInput(name, own, f"{other}, which the log is of")


def _value(scenario: Scenario, name: str) -> object:
    if name == "gpu_memory_utilization":  # the engine's default where it is not set
        return size(scenario, explain=False).memory.gpu_memory_utilization
    return getattr(scenario, name)


def _scheme(scenario: Scenario) -> str:
    return resolve_scheme(scenario.model_shape, scenario.weight_dtype).name
