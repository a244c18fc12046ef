import sys

import pytest

from planner.commands.parser import parser


@pytest.mark.parametrize(
    ("script", "named"), [("/usr/bin/headroom", "headroom"), ("/src/planner/__main__.py", "python -m planner")]
)
def test_the_help_names_the_command_as_it_was_called(script, named, monkeypatch):
    monkeypatch.setattr(sys, "argv", [script])
    assert parser().format_usage() == f"usage: {named} [-h] COMMAND ...\n"
