"""Deployments that vendors and engines recommend for a model (recommended_deployments.csv)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from planner.catalog.formats import plain_model_id
from planner.errors import InvalidInput, require_int
from planner.tables import read_table


@dataclass(frozen=True, slots=True, kw_only=True)
class Recommended:
    """One replica that a vendor recommends for a checkpoint, with who says so; None where the source is silent.

    `max_model_len` is the context that it is recommended for. [tokens]
    """

    model: str
    gpu: str
    gpus: int
    tensor_parallel_size: int | None
    attention_data_parallel_size: int | None
    expert_parallel: bool
    engine: str
    max_model_len: int | None
    by: str
    date: str
    source: str

    def __post_init__(self) -> None:
        require_int("gpus", self.gpus)
        for name in ("tensor_parallel_size", "attention_data_parallel_size", "max_model_len"):
            value = getattr(self, name)
            if value is not None:
                require_int(name, value)
        if not self.source:
            raise InvalidInput("source", self.source, "where it is recommended")

    def splits_as(self, split: Mapping[str, object]) -> bool:
        """Whether a replica split so is this one, as far as the source says how it is split."""
        asked = {
            "tensor_parallel_size": self.tensor_parallel_size,
            "attention_data_parallel_size": self.attention_data_parallel_size,
            "expert_parallel": self.expert_parallel or None,
        }
        return all(value is None or split[name] == value for name, value in asked.items())


@lru_cache(maxsize=1)
def _rows() -> tuple[Recommended, ...]:
    return tuple(_row(row) for row in read_table("catalog/recommended_deployments.csv"))


def _row(row: Mapping[str, str]) -> Recommended:
    def count(name: str) -> int | None:
        return int(row[name]) if row[name] else None

    return Recommended(
        model=row["model"],
        gpu=row["gpu"],
        gpus=int(row["gpus"]),
        tensor_parallel_size=count("tensor_parallel_size"),
        attention_data_parallel_size=count("attention_data_parallel_size"),
        expert_parallel=row["expert_parallel"] == "true",
        engine=row["engine"],
        max_model_len=count("max_model_len"),
        by=row["by"],
        date=row["date"],
        source=row["source"],
    )


def recommended_deployments(name: str) -> tuple[Recommended, ...]:
    """What vendors recommend for a model, whichever of its checkpoints they name.

    Parameters
    ----------
    name : str
        As `get_model` takes it; raises as that does.
    """
    plain = plain_model_id(name)
    return tuple(row for row in _rows() if plain_model_id(row.model) == plain)
