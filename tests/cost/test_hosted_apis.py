"""Prices of hosted APIs: one name for the same weights, medians, histories and tiers."""

from types import SimpleNamespace

import pytest

from planner.catalog.models import get_model
from planner.cost import hosted_apis
from planner.cost.hosted_apis import ApiOffer, api_prices, estimated_api_prices, normalised


def test_the_same_weights_have_one_name_everywhere():
    names = ["meta-llama/Llama-3.1-8B-Instruct", "llama-3.1-8b-instant", "@cf/meta/llama-3.1-8b-instruct-fp8"]
    assert {normalised(name) for name in names} == {"llama-3.1-8b"}


def test_api_prices_lie_within_their_offers():
    found = api_prices("openai/gpt-oss-120b")
    assert found is not None
    inputs = [offer.usd_per_mtok_input for offer in found.offers]
    assert min(inputs) <= found.usd_per_mtok_input <= max(inputs)
    assert "genai-prices" in found.source
    assert api_prices("nobody/no-such-model") is None


def test_one_offer_is_no_median(monkeypatch):
    offer = ApiOffer(provider="one", model="x", usd_per_mtok_input=1.0, usd_per_mtok_output=2.0)
    monkeypatch.setattr("planner.cost.hosted_apis._all_offers", lambda: {"x": (offer,), "y": (offer, offer)})
    assert api_prices("x").source.startswith("1 offer in genai-prices")
    assert api_prices("y").source.startswith("median of 2 offers in genai-prices")


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("accounts/fireworks/models/llama-v3p1-8b-instruct", "llama-v3.1-8b"),
        ("Qwen/Qwen3-32B-FP8", "qwen3-32b"),
        ("openai.gpt-oss-120b-1:0", "gpt-oss-120b"),
        ("google/gemma-3-27b-it", "gemma-3-27b"),
    ],
)
def test_owners_and_serving_suffixes_do_not_matter(written, name):
    assert normalised(written) == name


def model_with(prices):
    return SimpleNamespace(id="owner/some-model-instruct", prices=prices)


def price(low, high, cached=None):
    return SimpleNamespace(input_mtok=low, output_mtok=high, cache_read_mtok=cached)


@pytest.fixture
def offers(monkeypatch):
    def found(*all_prices):
        providers = [SimpleNamespace(id=f"p{i}", models=[model_with(prices)]) for i, prices in enumerate(all_prices)]
        monkeypatch.setattr("genai_prices.data.providers", providers)
        hosted_apis._all_offers.cache_clear()
        return api_prices("Some-Model")

    yield found
    hosted_apis._all_offers.cache_clear()


def test_the_median_of_what_is_offered(offers):
    found = offers(price(1, 4), price(3, 2), price(2, 9))
    assert (found.usd_per_mtok_input, found.usd_per_mtok_output) == (2, 4)
    assert [offer.usd_per_mtok_output for offer in found.offers] == [2, 4, 9]  # cheapest first


def test_of_a_history_the_last_price_and_of_tiers_the_first(offers):
    history = [SimpleNamespace(prices=price(9, 9)), SimpleNamespace(prices=price(SimpleNamespace(base=1.5), 6))]
    found = offers(history)
    assert (found.usd_per_mtok_input, found.usd_per_mtok_output) == (1.5, 6)


def test_what_is_free_or_has_no_price_is_no_offer(offers):
    assert offers(price(0, 0), price(None, 3)) is None


def test_cached_input_has_the_median_of_the_offers_that_name_it(monkeypatch):
    def offer(cached):
        return ApiOffer(
            provider="p", model="x", usd_per_mtok_input=1.0, usd_per_mtok_output=2.0, usd_per_mtok_cached_input=cached
        )

    offers = {"x": (offer(0.1), offer(None), offer(0.3)), "y": (offer(None),)}
    monkeypatch.setattr("planner.cost.hosted_apis._all_offers", lambda: offers)
    assert api_prices("x").usd_per_mtok_cached_input == pytest.approx(0.2)
    assert api_prices("y").usd_per_mtok_cached_input is None
    assert api_prices("y").usd_per_request(1000, 100, cached_share=0.5) == pytest.approx(0.0012)
    assert api_prices("x").usd_per_request(1000, 100, cached_share=0.5) == pytest.approx(0.0008)


def test_an_estimate_is_of_the_nearest_size():
    model = get_model("openai/gpt-oss-120b")
    found = estimated_api_prices(model)
    assert found.is_estimate
    assert found.usd_per_mtok_output == api_prices("openai/gpt-oss-120b").usd_per_mtok_output
    assert "gpt-oss-120b is the nearest in size" in found.source
    giant = SimpleNamespace(num_parameters=10**14, num_active_parameters=10**14)
    assert estimated_api_prices(giant) is None
