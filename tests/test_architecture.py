"""The house: `pyproject.toml` holds the order of the stages; here, its doors, and that tests mirror the modules."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
PLANNER = ROOT / "planner"
STAGES = {path.parent.name for path in PLANNER.glob("*/__init__.py")}
MODULES = sorted(path.relative_to(PLANNER) for path in PLANNER.rglob("*.py") if path.name != "__init__.py")
#: where a test file of the module's own name would say less
TESTED_BY = {Path("__main__.py"): "test_cli.py"} | {
    module: "dashboard/test_pages.py" for module in MODULES if module.parts[:2] == ("dashboard", "pages")
}


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


def names_imported(path: Path) -> set[str]:
    """Modules, and the names taken out of them as if they were modules too."""
    nodes = list(ast.walk(ast.parse(path.read_text())))
    taken = {f"{x.module}.{alias.name}" for x in nodes if isinstance(x, ast.ImportFrom) for alias in x.names}
    return taken | set(imported(path))


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_every_module_has_a_test_file_in_the_same_place(module):
    own = ROOT / "tests" / TESTED_BY.get(module, module.with_name(f"test_{module.name}"))
    assert own.exists(), f"{own.relative_to(ROOT)} is missing"
    if module.parts[:2] == ("dashboard", "pages"):  # scripts, run by name
        listed = names_imported(own.with_name("test_shell.py"))
        assert "planner.dashboard.shell.TITLES" in listed
        return
    dotted = ".".join(("planner", *module.with_suffix("").parts))
    assert dotted in names_imported(own), f"{own.relative_to(ROOT)} does not import {dotted}"
