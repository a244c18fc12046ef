import pytest

from planner.catalog import gpu_names
from planner.catalog.prices import PRICE_KINDS, median_offer, price_offers
from planner.errors import InvalidInput
from planner.tables import read_table


def test_every_offer_is_of_a_gpu_of_the_catalog_and_names_its_source():
    for row in read_table("catalog/gpu_prices.csv"):
        assert row["gpu"] in gpu_names()
        assert float(row["usd_per_hour"]) > 0
        assert row["kind"] in {*PRICE_KINDS, "serverless"}
        assert row["provider"]
        assert row["source"]


def test_offers_are_sorted_and_of_one_kind():
    offers = price_offers("H200-SXM-141GB", "ondemand")
    prices = [offer.usd_per_hour for offer in offers]
    assert prices == sorted(prices)
    assert {offer.kind for offer in offers} == {"ondemand"}
    assert len(price_offers("H200 SXM")) == len(offers) + 1  # Akash, a marketplace


def test_the_median_is_an_offer_that_somebody_made():
    # Hyperstack 2.50, RunPod 2.89, Lambda 3.29
    assert median_offer("H100 PCIe", "ondemand").named == "RunPod secure, on demand, 2026-11-09"
    # Lambda 2.29, CoreWeave 6.50: the cheaper of two
    assert median_offer("GH200 96GB", "ondemand").usd_per_hour == 2.29
    assert median_offer("H20", "ondemand") is None


def test_an_offer_without_a_date_says_so():
    assert median_offer("T4", "ondemand").named == "GCP GPU only, VM extra, on demand, undated"


def test_an_unknown_gpu_is_told():
    with pytest.raises(InvalidInput, match="gpu"):
        price_offers("H9000")
