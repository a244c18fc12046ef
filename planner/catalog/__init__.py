"""Published models, GPUs, engines and token lengths: data files with a source for each value, found by name.

In: a name as people write it. Out: `ModelShape`, `Gpu`, `EngineSettings` or length quantiles. To add one, add a row.
"""

from planner.catalog.dates import created_on
from planner.catalog.day_shapes import day_shape, engine_start_s
from planner.catalog.engines import (
    as_of,
    engine_names,
    get_engine,
    release_names,
    version_at,
    version_in_full,
)
from planner.catalog.flags import Flag, flags_of
from planner.catalog.formats import PublishedFormat, alike_formats, one_of_each_kind, plain_model_id, published_formats
from planner.catalog.gguf import gguf_repository, ollama_tag
from planner.catalog.gpus import get_gpu, gpu_names, recalled_figures
from planner.catalog.hub import fetch_from_hub
from planner.catalog.images import EngineImage, engine_image
from planner.catalog.kernel_support import (
    EMULATED,
    NATIVE,
    REFUSED,
    UNVERIFIED,
    WEIGHT_ONLY,
    KernelSupport,
    cache_support,
    kernel_support,
)
from planner.catalog.lengths import LENGTH_SET_TITLES, at_equal_steps, length_quantiles, length_set_names
from planner.catalog.models import (
    base_model_id,
    catalog_date,
    checkpoint,
    draft_head_names,
    find_model_id,
    get_model,
    hub_ids,
    model_names,
    recalled_facts,
)
from planner.catalog.names import listed_weight_dtype
from planner.catalog.prices import PRICE_KINDS, PriceOffer, median_offer, price_offers
from planner.catalog.recommended import Recommended, recommended_deployments
from planner.catalog.refresh import Finding, findings_of, findings_text, write_findings

__all__ = [
    "EMULATED",
    "LENGTH_SET_TITLES",
    "NATIVE",
    "PRICE_KINDS",
    "REFUSED",
    "UNVERIFIED",
    "WEIGHT_ONLY",
    "EngineImage",
    "Finding",
    "Flag",
    "KernelSupport",
    "PriceOffer",
    "PublishedFormat",
    "Recommended",
    "alike_formats",
    "as_of",
    "at_equal_steps",
    "base_model_id",
    "cache_support",
    "catalog_date",
    "checkpoint",
    "created_on",
    "day_shape",
    "draft_head_names",
    "engine_image",
    "engine_names",
    "engine_start_s",
    "fetch_from_hub",
    "find_model_id",
    "findings_of",
    "findings_text",
    "flags_of",
    "get_engine",
    "get_gpu",
    "get_model",
    "gguf_repository",
    "gpu_names",
    "hub_ids",
    "kernel_support",
    "length_quantiles",
    "length_set_names",
    "listed_weight_dtype",
    "median_offer",
    "model_names",
    "ollama_tag",
    "one_of_each_kind",
    "plain_model_id",
    "price_offers",
    "published_formats",
    "recalled_facts",
    "recalled_figures",
    "recommended_deployments",
    "release_names",
    "version_at",
    "version_in_full",
    "write_findings",
]
