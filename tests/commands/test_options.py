import pytest

from planner.commands.options import Parser, add_columns, planning
from planner.errors import PlannerError


def test_wrong_arguments_are_an_error_of_the_planner():
    with pytest.raises(PlannerError, match="--help"):
        Parser().parse_args(["--nonsense"])


def test_an_option_may_be_repeated_for_each_column():
    parser = Parser()
    add_columns(parser)
    assert parser.parse_args(["--column", "arrival=t", "--column", "prompt=in"]).column == ["arrival=t", "prompt=in"]


def test_a_command_that_plans_takes_a_scenario_or_none():
    parser = Parser(parents=planning())
    assert parser.parse_args([]).scenario is None
    assert parser.parse_args(["u=5", "--seed", "3"]).seed == 3
