"""Published lines of engines: what a person reads in them is what is understood, and what a plan starts from."""

import csv
import json
import random
import re
from pathlib import Path

import pytest

from planner.errors import InvalidInput, PlannerError
from planner.reading import read, reading_dict
from planner.reading.reading import Reading, columns_of

PUBLISHED = Path(__file__).parent / "published"
LINES = (PUBLISHED / "published.csv").read_text().splitlines()
ROWS = list(csv.DictReader(line for line in LINES if not line.startswith("#")))


def told(reading: Reading) -> dict[str, str | float]:
    """What was understood, by the name of a field of the Scenario where it is one, else by that of the figure."""
    found: dict[str, str | float] = {}
    for item in reading.understood:
        found.setdefault(item.name, item.value)
    return found


@pytest.mark.parametrize("row", ROWS, ids=[row["file"] for row in ROWS])
def test_published_lines(row):
    reading = read((PUBLISHED / row["file"]).read_bytes())
    assert reading.kind == row["kind"]
    assert reading.problem == ""
    figures = told(reading)
    lines = (PUBLISHED / row["file"]).read_text().split("\n")
    assert all(1 <= item.line <= len(lines) for item in reading.understood)
    for pair in row["expected"].split("; "):
        name, _, expected = pair.partition("=")
        if name == "outcome":
            assert reading.outcome == expected
        elif name == "model_scenario":
            assert expected.lower() in reading.scenario.model.lower()
        elif name in figures and not isinstance(figures[name], float):
            assert str(figures[name]) == expected, name
        elif name in figures:
            assert figures[name] == pytest.approx(float(expected), abs=0.005), name
        else:  # a setting under the engine's own name: what the plan has made of it
            value = getattr(reading.scenario, name)
            assert str(value) == expected or float(value) == pytest.approx(float(expected)), name


def test_no_published_file_is_forgotten():
    assert {row["file"] for row in ROWS} == {path.name for path in PUBLISHED.glob("*.txt")}
    assert len({row["file"].rsplit(".txt")[0] for row in ROWS}) >= 10


def test_recorded_traffic_is_read_where_no_engine_speaks():
    rows = "".join(f"{second},{100 + second % 7},20\n" for second in range(300))
    reading = read("arrived_at,num_prefill_tokens,num_decode_tokens\n" + rows)
    assert reading.kind == "recorded traffic"
    assert told(reading)["mean_rate_rps"] == pytest.approx(300 / 299)
    assert reading.scenario.lengths == "quantiles"
    assert reading.traffic.num_requests == 300


def test_a_wrong_line_of_a_recording_is_named():
    with pytest.raises(InvalidInput, match="line 3, num_decode_tokens"):
        read("arrived_at,num_prefill_tokens,num_decode_tokens\n0,1,2\n1,2,minus\n")


def test_a_table_with_names_of_its_own_is_read_by_the_columns_that_the_user_names():
    data = "seconds,in,out\n".encode("utf-16") + "".join(f"{n},{n + 10},7\n" for n in range(50)).encode("utf-16-le")
    assert columns_of(data).names == ("seconds", "in", "out")
    with pytest.raises(InvalidInput):
        read(data)
    reading = read(data, columns={"arrival": "seconds", "prompt": "in", "output": "out"})
    assert reading.traffic.mean_prompt_tokens == sum(range(10, 60)) / 50
    assert reading.scenario.output_quantiles == ".".join(["7"] * 16)
    with pytest.raises(InvalidInput) as caught:
        read(data, columns={"arrival": "nothing"})
    assert "seconds" in caught.value.valid
    assert columns_of(b"\x1f\x8b archive") is None


def test_a_report_of_a_model_that_no_catalog_has_is_said():
    report = (Path(__file__).parent / "published" / "bench-trtllm-1.1.txt").read_text()
    strange = report.replace("deepseek-ai/DeepSeek-R1", "nobody/none").replace("DeepSeek-R1-0528-FP4", "none")
    reading = read(strange)
    assert reading.scenario is None
    assert "nobody/none" in reading.problem


def test_a_setting_that_one_line_says_under_two_names_is_one_figure():
    told = read((PUBLISHED / "vllm-0.10.2.txt").read_bytes())  # model_tag and model in its line 2
    assert [item.line for item in told.understood if item.name == "model"] == [2]


@pytest.mark.parametrize(
    ("file", "before", "after", "named"),
    [
        ("vllm-0.8.3.txt", "pipeline_parallel_size=1", "pipeline_parallel_size=0", "pipeline_parallel_size"),
        ("bench-trtllm-1.1.txt", "TP Size:                4", "TP Size: " + "9" * 400, ""),
    ],
)
def test_a_width_that_no_machine_has_leaves_no_scenario(file, before, after, named):
    text = (PUBLISHED / file).read_text()
    assert before in text
    reading = read(text.replace(before, after))
    assert reading.scenario is None
    assert named in reading.problem


HARM = (
    b"9" * 400,
    b"1e999",
    b"-1",
    b"nan",
    b"\x00" * 300,
    b"\xff\xfe",
    b"[[[[",
    b'{"a":',
    b"=" * 500,
    b"|",
    b",",
    b"\x1b[3",
)


@pytest.mark.parametrize("seed", range(4))
def test_whatever_is_cut_spliced_or_overwritten_is_read_or_refused(seed):
    draw = random.Random(seed)
    files = [path.read_bytes() for path in sorted(PUBLISHED.glob("*.txt"))]
    for _ in range(30):
        data, other = draw.choice(files), draw.choice(files)
        place, end, far = draw.randrange(len(data)), draw.randrange(len(data)), draw.randrange(len(other))
        harmed = draw.choice(
            (
                data[:place],
                data[:place] + other[far:],
                data[:place] + draw.choice(HARM) + data[place:],
                re.sub(rb"\d+(?:\.\d+)?", lambda found: draw.choice((found[0], found[0], *HARM[:4])), data),
                b"\n".join(draw.sample(data.split(b"\n"), len(data.split(b"\n")))),
                data[: max(place, end)] + data[min(place, end) :],
                data.decode().encode(draw.choice(("utf-16", "utf-8-sig", "utf-16-le"))),
            )
        )
        try:
            reading = read(harmed)
        except PlannerError:
            continue
        assert reading.kind and json.loads(json.dumps(reading_dict(reading)))["kind"] == reading.kind
