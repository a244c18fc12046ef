"""The table that the seed article prints."""

from planner.simulation.seed_article import format_seed_table, seed_table

# What the article's own script prints.
PRINTED = """\
200 requests, output length median 90 tokens, longest 910, total 25,505 tokens

scheduling              decode steps   tokens per step   slots busy   median wait   95th percentile
one at a time                 25,505              1.00         100%        11,880            24,817
static batches of 8            8,020              3.18          40%         3,682             7,758
continuous, 8 slots            3,319              7.68          96%         1,565             3,101

key-value cache per token for a 12-layer, 768-wide model: 36 KB; for 8 sequences of 1,024 tokens: 288 MB
the same for a 32-layer, 4,096-wide model: 512 KB per token, 16 GB for 8 sequences of 4,096 tokens"""


def test_the_table_is_exact():
    assert format_seed_table() == PRINTED


def test_steps_and_the_slow_tail():
    rows = seed_table().rows
    assert [row.decode_steps for row in rows] == [25_505, 8_020, 3_319]
    assert [row.p95_wait_steps for row in rows] == [24_817, 7_758, 3_101]
