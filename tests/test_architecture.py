"""The arrow: a module imports only from its left; streamlit and plotly stay where they belong."""

import ast
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]
LAYERS = [
    {"units", "errors"},
    {"model", "hardware", "engine", "traffic"},
    {"model_config", "quantization", "catalog"},
    {"settings", "advanced", "entered", "contradictions", "scenario"},
    {"share", "presets"},
    {"simulation.records", "memory_plan"},
    {"sizing"},
    {"step_time"},
    {"step_time_model"},
    {"simulation"},
    {"metrics"},
    {"api_prices", "cost", "confidence"},
    {"saturation"},
    {"policies", "clients"},
    {"advice"},
    {"fleet", "answer"},
    {"planning"},
    {"search", "report"},
    {"simulation.papers", "accuracy", "kernel_tables", "calibration"},
    {"charts"},
    {"dashboard", "__main__"},
]


def layer_of(module: str) -> int:
    name = module.removeprefix("planner.")
    best, level = -1, -1
    for index, layer in enumerate(LAYERS):
        for entry in layer:
            if (name == entry or name.startswith(entry + ".")) and len(entry) > best:
                best, level = len(entry), index
    assert level >= 0, f"planner.{name} belongs to no layer: add it where it may be imported from"
    return level


def module_name(path: Path) -> str:
    parts = path.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imported(path: Path) -> list[str]:
    found = []
    for node in ast.walk(ast.parse(path.read_text())):
        if isinstance(node, ast.Import):
            found += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            found.append(node.module)
            found += [f"{node.module}.{alias.name}" for alias in node.names]
    return found


def modules() -> dict[str, Path]:
    return {module_name(path): path for path in (ROOT / "planner").rglob("*.py")}


def test_a_module_imports_only_from_its_left():
    known = modules()
    wrong = []
    for name, path in known.items():
        if name == "planner":
            continue
        for target in imported(path):
            if target in known and target not in ("planner", name) and layer_of(target) > layer_of(name):
                wrong.append(f"{name} imports {target}")
    assert not wrong


def test_streamlit_and_plotly_stay_where_they_belong():
    for name, path in modules().items():
        tops = {target.split(".")[0] for target in imported(path)}
        if not name.startswith("planner.dashboard"):
            assert "streamlit" not in tops, name
        if not name.startswith("planner.charts"):
            assert "plotly" not in tops, name


def test_import_planner_is_light():
    code = "import sys, planner; print(sorted({'streamlit','plotly','pandas','numba','numpy'} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert out.stdout.strip() == "[]"


def test_the_library_runs_without_streamlit_or_plotly():
    code = "import sys, planner; planner.plan, planner.recommend; print({'streamlit', 'plotly'} & set(sys.modules))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, cwd=ROOT, check=True)
    assert out.stdout.strip() == "set()"


def test_top_level_is_fixed():
    allowed = {"README.md", "requirements.txt", "app.py", "planner", "tests", "pyproject.toml", "LICENSE"}
    listed = subprocess.run(["git", "ls-files"], capture_output=True, text=True, cwd=ROOT, check=False).stdout.split()
    tops = {path.split("/")[0] for path in listed}
    assert {top for top in tops if not top.startswith(".")} <= allowed
