from planner.commands.parser import parser
from planner.commands.servers import add_to
from tests.commands.running import declared


def test_these_are_its_commands():
    assert declared(add_to) == {"serve", "mcp", "rest"}


def test_without_an_address_only_this_machine_reaches_the_tools():
    assert parser().parse_args(["rest"]).address == "127.0.0.1"
