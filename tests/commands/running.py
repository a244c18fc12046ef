from planner.__main__ import main
from planner.commands.options import Parser


def run(*arguments, capsys):
    """Exit code, standard output and standard error of a command."""
    code = main(list(arguments))
    out = capsys.readouterr()
    return code, out.out, out.err


def declared(add_to):
    """Names of the commands that a module declares."""
    commands = Parser().add_subparsers()
    add_to(commands)
    return set(commands.choices)
