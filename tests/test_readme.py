"""What the README promises runs as written."""

import re
import tomllib
from pathlib import Path

from planner.commands import parser

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text()


def test_the_library_example_runs(capsys):
    code = re.search(r"```python\n(.*?)```", README, re.S).group(1)
    exec(compile(code, "README.md", "exec"), {})
    assert "tokens of KV cache per replica" in capsys.readouterr().out


def test_every_command_is_in_the_readme():
    actions = next(action for action in parser()._actions if action.choices)
    for name in actions.choices:
        assert f"python -m planner {name}" in README


def test_the_two_commands_need_only_files_that_exist():
    for path in re.findall(r"-r (\S+)", README):
        assert (ROOT / path).exists()
    assert (ROOT / "app.py").exists()


def test_python_version_is_the_one_promised():
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    assert project["requires-python"] == ">=3.11"
    assert "Python 3.11 or newer" in README
