"""Data files as rows of text."""

import csv

import pytest

from planner.tables import PLANNER, read_table


def test_rows_are_columns_to_text_without_the_notes(tmp_path, monkeypatch):
    (tmp_path / "x.csv").write_text('# a note to the reader\nname,value,source\na,1,"one, two"\n# another\nb,,\n')
    monkeypatch.setattr("planner.tables.PLANNER", tmp_path)
    read_table.cache_clear()
    rows = read_table("x.csv")
    assert rows == (
        {"name": "a", "value": "1", "source": "one, two"},
        {"name": "b", "value": "", "source": ""},
    )
    read_table.cache_clear()


def test_a_file_is_read_once():
    assert read_table("catalog/gpus.csv") is read_table("catalog/gpus.csv")


def test_a_file_that_is_not_there_is_an_error():
    with pytest.raises(FileNotFoundError):
        read_table("catalog/nothing.csv")


@pytest.mark.parametrize("path", sorted(PLANNER.glob("catalog/*.csv")), ids=lambda path: path.name)
def test_no_data_file_has_a_row_longer_or_shorter_than_its_header(path):
    lines = [line for line in path.read_text(encoding="utf-8").splitlines() if not line.startswith("#")]
    widths = {len(cells) for cells in csv.reader(lines)}
    assert len(widths) == 1
    assert len(read_table(f"catalog/{path.name}")) == sum(1 for _ in csv.reader(lines)) - 1
