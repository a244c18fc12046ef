"""Container images of the engines, and what a cluster counts and watches (engine_images.csv)."""

from __future__ import annotations

from dataclasses import dataclass

from planner.tables import read_table


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineImage:
    """One image: its address, the device that Kubernetes counts, and the metric of running requests ("" = none)."""

    image: str
    device: str
    running_metric: str
    source: str


def engine_image(engine: str, vendor: str, version: str) -> EngineImage | None:
    """The container image of an engine; None where the catalog knows none for the GPU's vendor.

    Parameters
    ----------
    engine : str
        vllm, sglang, trtllm, tgi, llamacpp or ollama.
    vendor : str
        As in gpus.csv; "" counts as NVIDIA.
    version : str
        Release in full, such as 0.33.0; it is the tag where the publisher has one for each release.
    """
    for row in read_table("catalog/engine_images.csv"):
        if (row["engine"], row["vendor"]) == (engine, vendor or "NVIDIA"):
            return EngineImage(
                image=row["image"].replace("{version}", version),
                device=row["device"],
                running_metric=row["running_metric"],
                source=row["source"],
            )
    return None
