"""Tables of the pages that need pandas."""

import pandas as pd

from planner.dashboard import frames


def test_published_ratios_stand_above_the_rows_without_one():
    published = frames.paper_results()["published"].tolist()
    known = [ratio for ratio in published if ratio != "—"]
    assert len(known) >= 5  # Anyscale's three and PagedAttention's two at the least
    assert published[: len(known)] == known


# GPT-2 small: 2 × 12 × 768 × 2 bytes a token; the article's larger model 2 × 32 × 4,096 × 2.
def test_cache_sizes_of_the_seed_article_by_hand():
    found = frames.seed_cache_rows()
    for index, (layers, width, tokens, unit) in enumerate(((12, 768, 8 * 1024, 2**20), (32, 4096, 8 * 4096, 2**30))):
        per_token = 2 * layers * width * 2
        assert found[index]["per token"] == f"{per_token / 1024:.0f} KiB"
        assert found[index]["together"].split()[0] == f"{per_token * tokens / unit:.0f}"


def test_cells_write_fractions_as_percentages_and_what_is_missing_as_a_dash():
    rows = frames.share_rows(
        pd.DataFrame({"tool": ["ours", "=1+1"], "points": [1479, 3], "error": [0.123, float("nan")]})
    )
    assert rows[0] == {"tool": "ours", "points": "1,479", "error": "12 %"}
    assert rows[1]["error"] == "—"
    assert not rows[1]["tool"].startswith("=")


def test_an_error_table_for_reading_keeps_its_signs_without_an_apostrophe():
    one = {name: [0.25] for name in frames.ERROR_HEADERS} | {"rows": [1200], "shared rows": [0]}
    (row,) = frames.error_rows(pd.DataFrame({"class": ["dense"]} | one | {"signed left out": [-0.081]}), "class")
    assert (row["class"], row["rows"], row["median"], row["signed"]) == ("dense", "1,200", "25 %", "−8.1 %")
