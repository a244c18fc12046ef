"""The published comparisons must come out as far as scheduling and memory reach."""

from planner.accuracy.papers import anyscale_rows, paged_attention_rows


def test_paged_attention_two_to_four_times():
    rows = {(row.workload.split(":")[0], row.system): row for row in paged_attention_rows(600)}
    longest = rows["ShareGPT", "vLLM over Orca, longest context"]
    assert 2.7 <= longest.simulated <= 8  # section 6.2; the abstract says 2 to 4
    assert 1.2 <= rows["ShareGPT", "vLLM over Orca, output known"].simulated <= 2.7
    assert rows["ShareGPT", "vLLM over FasterTransformer"].simulated > 4
    assert rows["ShareGPT", "vLLM"].kv_useful_fraction > 0.9  # near-zero waste
    assert 0.15 <= longest.kv_useful_fraction <= 0.4  # 20 to 38 % were measured


def test_anyscale_order_and_spread():
    rows = {(row.workload, row.system): row.simulated for row in anyscale_rows(400)}
    wide = "512 in, up to 1,536 out"
    assert 1 < rows[wide, "FasterTransformer"] < 4
    assert 2 < rows[wide, "TGI, Ray Serve"] < 8
    assert 4 < rows[wide, "vLLM"] < 23  # kernels made the rest of the 23 times
    narrow = "512 in, up to 32 out"
    assert rows[narrow, "vLLM"] < 1.5  # little variance, little to gain
