"""A run of a benchmark in the columns of a serving row."""

from planner.reading.runs import Run, item, run_of


def test_a_figure_has_the_unit_of_its_column_and_a_text_none():
    assert item("ttft_ms_mean", 12.0, 3).unit == "ms"
    assert item("output_tok_s_total", 9.0, 3).unit == "tokens/s"
    assert item("model", "a/b", 3).unit == ""


def test_a_report_with_model_and_split_tells_the_deployment():
    assert run_of("trtllm-bench", {"model": "a/b", "tp": 2.0}, 1).tells_deployment
    assert not run_of("vllm bench serve", {"model": "a/b"}, 1).tells_deployment
    assert not Run(tool="", columns={"tp": 2.0}, understood=()).tells_deployment
