"""Published models, GPUs, engines and token lengths: data files with a source for each value, found by name.

In: a name as people write it. Out: `ModelShape`, `Gpu`, `EngineSettings` or length quantiles. To add one, add a row.
"""

from planner.catalog.engines import as_of, engine_names, get_engine, newest_version, release_names, version_at
from planner.catalog.formats import PublishedFormat, one_of_each_kind, published_formats
from planner.catalog.gpus import get_gpu, gpu_names, recalled_figures
from planner.catalog.lengths import LENGTH_SET_TITLES, length_quantiles, length_set_names
from planner.catalog.models import base_model_id, checkpoint, find_model_id, get_model, model_names, recalled_facts
from planner.catalog.prices import PRICE_KINDS, PriceOffer, median_offer, price_offers

__all__ = [
    "LENGTH_SET_TITLES",
    "PRICE_KINDS",
    "PriceOffer",
    "PublishedFormat",
    "as_of",
    "base_model_id",
    "checkpoint",
    "engine_names",
    "find_model_id",
    "get_engine",
    "get_gpu",
    "get_model",
    "gpu_names",
    "length_quantiles",
    "length_set_names",
    "median_offer",
    "model_names",
    "newest_version",
    "one_of_each_kind",
    "price_offers",
    "published_formats",
    "recalled_facts",
    "recalled_figures",
    "release_names",
    "version_at",
]
