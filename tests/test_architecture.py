"""The house: `pyproject.toml` holds the order of the stages; here, that each is entered by its door."""

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
PLANNER = ROOT / "planner"
STAGES = {path.parent.name for path in PLANNER.glob("*/__init__.py")}


def imported(path: Path) -> list[str]:
    nodes = list(ast.walk(ast.parse(path.read_text())))
    found = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    return found + [node.module for node in nodes if isinstance(node, ast.ImportFrom) and node.module]


def test_nobody_imports_past_the_door_of_another_stage():
    wrong = []
    for path in PLANNER.rglob("*.py"):
        own = path.relative_to(PLANNER).parts[0]
        for target in imported(path):
            parts = target.split(".")
            if parts[0] == "planner" and len(parts) > 2 and parts[1] in STAGES - {own}:
                wrong.append(f"{path.relative_to(ROOT)} imports {target}")
    assert not wrong


def test_streamlit_and_plotly_stay_where_they_belong():
    for path in PLANNER.rglob("*.py"):
        tops = {target.split(".")[0] for target in imported(path)}
        stage = path.relative_to(PLANNER).parts[0]
        assert stage == "dashboard" or "streamlit" not in tops, path
        assert stage == "charts" or "plotly" not in tops, path


def test_import_planner_is_light():
    code = "import sys, planner; print(sorted({'streamlit','plotly','pandas','numba','numpy'} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert out.stdout.strip() == "[]"


def test_the_library_runs_without_streamlit_plotly_or_pandas():
    heavy = "{'streamlit', 'plotly', 'pandas'}"
    code = f"import sys, planner; planner.plan, planner.recommend; print({heavy} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert out.stdout.strip() == "set()"


def test_top_level_is_fixed():
    allowed = {"README.md", "requirements.txt", "app.py", "planner", "tests", "pyproject.toml", "LICENSE"}
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=ROOT, check=False).stdout.split()
    tops = {path.split("/")[0] for path in listed}
    assert {top for top in tops if not top.startswith(".")} <= allowed
