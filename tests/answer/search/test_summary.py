import dataclasses

from planner.answer.search.outcome import EVIDENCE, MEETS, MISSES, Candidate, Search, cheapest_as_sure
from planner.answer.search.summary import (
    changed_settings,
    format_in_words,
    search_text,
    split_in_words,
    summary_of,
    tally,
)
from planner.scenario.scenario import Scenario

BASE = Scenario(model="deepseek-ai/DeepSeek-V3", gpu="H200 SXM", tensor_parallel_size=8)
WIDE = BASE.replace(tensor_parallel_size=2, attention_data_parallel_size=4, expert_parallel=True)


def row(scenario=WIDE, status=MEETS):
    return Candidate(
        scenario=scenario,
        status=status,
        reason="the targets set it",
        num_gpus=40,
        usd_per_month=131_400.0,
        usd_per_gpu_hour=4.5,
        price_source="fal, on demand, 2026-09-20 (the middle of 8 offers; fal.ai)",
        ttft_s=0.9,
        tpot_s=0.03,
        probability=0.8,
        evidence=EVIDENCE[0],
    )


def search(*rows):
    return Search(
        candidates=rows,
        candidates_considered=120,
        candidates_simulated=7,
        rejected_by_memory=100,
        rejected_when_idle=3,
        pruned_by_bound=10,
        over_the_limit=0,
        wall_s=2.5,
        summary=summary_of(rows, BASE, finished=True),
    )


def test_a_format_is_named_as_people_name_it():
    assert format_in_words(BASE.replace(weight_dtype="fp8")) == "fp8 weights"
    assert format_in_words(BASE.replace(weight_dtype="nvfp4_linear")) == "weights in NVFP4 of every linear layer"


def test_a_deployment_in_words():
    assert split_in_words(WIDE) == "TP 2, attention DP 4, EP"
    assert split_in_words(Scenario()) == ""
    assert format_in_words(WIDE) == "published weights"
    assert format_in_words(WIDE.replace(weight_dtype="nvfp4", kv_cache_dtype="fp8")) == "nvfp4 weights, fp8 KV cache"


def test_settings_that_differ_are_named_with_what_they_assume():
    assert changed_settings(WIDE, BASE) == ""
    tuned = WIDE.replace(engine="sglang", max_num_seqs=64, num_speculative_tokens=3, max_num_batched_tokens=8192)
    assert changed_settings(tuned, BASE) == (
        "sglang, 64 sequences at most, 8,192 tokens a step, drafts 3 (assumes that 70 % are accepted)"
    )


def test_the_best_is_named_with_one_price_its_kind_and_date():
    assert summary_of((row(),), BASE, finished=True) == (
        "40 × H200 SXM (TP 2, attention DP 4, EP, published weights) is the cheapest deployment that meets the "
        "targets: 131,400 USD a month at 4.50 USD per GPU-hour (fal, on demand, 2026-09-20), 80 % sure. None of those "
        "planned is 90 % sure."
    )
    assert "cheapest deployment so far" in summary_of((row(),), BASE, finished=False)


def test_the_cheapest_that_is_sure_comes_before_the_cheapest():
    dear = dataclasses.replace(row(Scenario(gpu="B200")), num_gpus=24, usd_per_month=150_000.0, probability=0.97)
    assert summary_of((row(), dear), BASE, finished=True) == (
        "24 × B200 (published weights) is the cheapest deployment that is at least 90 % sure to meet the targets, of "
        "those planned: 150,000 USD a month at 4.50 USD per GPU-hour (fal, on demand, 2026-09-20). 40 × H200 SXM "
        "(TP 2, attention DP 4, EP, published weights) would cost 131,400 USD a month, but is only 80 % sure."
    )
    assert summary_of((dear, row()), BASE, finished=True).endswith("97 % sure.")


def test_a_row_that_misses_is_never_the_sure_one():
    missed = dataclasses.replace(row(status=MISSES), probability=0.95)
    assert cheapest_as_sure((missed, row()), 0.9) is None
    assert cheapest_as_sure((missed, row()), 0.8) == row()


def test_where_nothing_meets_the_targets_the_closest_is_named():
    said = summary_of((row(status=MISSES),), BASE, finished=True)
    assert said == "No deployment tried meets these targets. 40 × H200 SXM comes closest: the targets set it"
    assert "yet" in summary_of((), BASE, finished=False)


def test_the_tally_adds_up_what_became_of_the_candidates():
    assert tally(search()) == (
        "120 deployments considered in 2.5 s: 100 do not start, 3 miss the targets even on an idle replica, 10 cannot "
        "be the cheapest of their vendor or evidence, 7 planned whole."
    )


def test_the_terminal_shows_a_line_for_each_row():
    lines = search_text(search(row()), BASE).splitlines()
    assert len(lines) == 3
    assert "131,400 USD/month at 4.50 USD/GPU-h" in lines[2]
    assert "80 % sure, kernels measured" in lines[2]


def test_the_terminal_says_what_vendors_recommend_and_that_an_api_is_cheaper():
    best = dataclasses.replace(row(), recommended_by="vLLM's recipes", api_note="An API is cheaper.")
    text = search_text(dataclasses.replace(search(best), advice="They recommend this."), BASE)
    assert "recommended by vLLM's recipes" in text
    assert text.splitlines()[2:4] == ["They recommend this.", "An API is cheaper."]
