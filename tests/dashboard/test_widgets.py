"""Text from users is never markdown; figures with their units."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from planner.dashboard.derivations import ORDER
from planner.dashboard.markdown import WORD_JOINER
from planner.dashboard.widgets import FORMULA_TITLES, hover_text, plain, prose, value_text
from planner.memory.memory_plan import Formula

from .conftest import clean


@pytest.mark.parametrize(
    "text", ["$a$", "[x](y)", "`c`", "*b*", "<b>", ":red[x]", ":material/home:", "http://a.b", "www.a.b", "a@b.c"]
)
def test_users_text_is_never_markdown(text):
    # CommonMark: a backslash before ASCII punctuation makes it literal.
    for escape in (plain, prose):
        escaped = escape(text)
        assert escaped != text
        assert escaped.replace("\\", "").replace(WORD_JOINER, "") == text


@pytest.mark.parametrize(
    "address", ["https://a.example/b", "HTTP://a.example", "www.a.example", "WWW.a.b", "x.y@a.example"]
)
def test_no_address_in_a_text_becomes_a_link(address):
    # The patterns of mdast-util-gfm-autolink-literal, which look at a text after its escapes are resolved.
    links = re.compile(r"(https?://|www(?=\.))[-.\w]+|[-.\w+]+@[-\w]+(\.[-\w]+)+", re.IGNORECASE)
    assert links.search(address)
    for escape in (plain, prose):
        assert not links.search(escape(f"see {address}, please").replace("\\", ""))


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (2**30, "bytes", "1,073,741,824 bytes = 1.000 GiB"),
        (4096, "bytes", "4,096 bytes"),
        (12.0, "tokens", "12 tokens"),
        (12.34567, "sequences", "12.346 sequences"),
        (1.0, "sequences", "1 sequence"),
        (14.96, "GiB", "14.96 GiB"),
        (-112.4, "GiB", "−112.4 GiB"),
    ],
)
def test_values_with_their_unit(value, unit, said):
    made = Formula(name="x", expression="", substituted="", value=value, unit=unit, source="")
    assert value_text(made) == said


def test_every_formula_of_the_memory_page_has_a_title():
    assert set(ORDER) <= set(FORMULA_TITLES)


@given(st.text(max_size=60))
def test_a_hover_box_gets_no_tags_but_our_line_breaks(text):
    made = hover_text(text).replace("<br>", "")
    assert "<" not in made and ">" not in made
    assert made.count("&") == made.count("&amp;") + made.count("&lt;") + made.count("&gt;")


@given(st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=126), max_size=60))
def test_escaping_keeps_what_was_written(text):
    assert plain(text).replace("\\", "").replace(WORD_JOINER, "") == text.replace("\\", "")


def test_a_percentage_stays_by_its_figure():
    assert prose("61 % of them") == "61\u00a0% of them"


def test_an_engine_that_does_not_start_says_so_in_its_own_words(open_app):
    # 671 billion parameters in 8 bits on one GPU of 80 GB
    app = open_app({"v": "2", "m": "deepseek-ai/DeepSeek-V3"}, "memory")
    assert any("out of memory" in error.value for error in app.error)
    assert any("start" in text.value for text in app.markdown)


def test_a_folded_section_draws_its_table_once_it_is_opened(open_app):
    app = open_app({"v": "2", "nr": "300"})
    assert not app.table
    app.session_state["origins"] = True
    app.run()
    assert len(clean(app).table) == 1
