"""Text of users and our own sentences on a page: marks and addresses lose their meaning, words stay."""

import pytest

from planner.dashboard.markdown import WORD_JOINER, escaped


@pytest.mark.parametrize("text", ["plain words", "8,192 tokens", "p95: 139 ms"])
def test_words_stay_as_they_are(text):
    assert escaped(text) == text


@pytest.mark.parametrize("mark", ["`", "*", "_", "[", "]", "$", "<", ">", "~"])
def test_marks_lose_their_meaning(mark):
    # CommonMark: a backslash before ASCII punctuation makes it literal.
    assert escaped(f"a{mark}b") == f"a\\{mark}b"


def test_an_address_is_broken_by_a_character_that_nobody_sees():
    found = escaped("see www.example.org")
    assert WORD_JOINER in found
    assert found.replace(WORD_JOINER, "").replace("\\", "") == "see www.example.org"
