"""Where GGUF files of a model are: repositories of the hub (gguf_repositories.csv) and Ollama's library."""

from __future__ import annotations

from functools import lru_cache

from planner.catalog.formats import plain_model_id
from planner.catalog.names import variants
from planner.tables import read_table


def gguf_repository(name: str) -> str:
    """Repository with GGUF files of a model, one for each usual scheme; "" where the catalog knows none.

    Parameters
    ----------
    name : str
        As `get_model` takes it; raises as that does. A checkpoint counts as the model that it was made of.
    """
    return _repositories().get(plain_model_id(name), "")


@lru_cache(maxsize=1)
def _repositories() -> dict[str, str]:
    return {row["model"]: row["repository"] for row in read_table("catalog/gguf_repositories.csv")}


def ollama_tag(name: str, quantization: str) -> str:
    """Tag of Ollama's library with this model in this weight format; "" where the catalog knows none.

    Parameters
    ----------
    name : str
        As `get_model` takes it; raises as that does.
    quantization : str
        A name of quantization.csv; "" = as the model is published.
    """
    plain = plain_model_id(name)
    for row in variants().values():
        if "/" not in row["id"] and row["model"] == plain and row["quantization"] == quantization:
            return row["id"]
    return ""
