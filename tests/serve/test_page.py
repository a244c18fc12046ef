import os
import signal
import socket
import subprocess
import sys
import time
import tomllib
import urllib.request
import zipfile
from importlib import import_module
from importlib.metadata import Distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

from planner.errors import InvalidInput
from planner.serve import page
from planner.serve.page import dashboard_script, serve_dashboard

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def as_tuple(text: str) -> tuple[str, str]:
    requirement = Requirement(text)
    return canonicalize_name(requirement.name), str(requirement.specifier)


def answer_of(url: str, process: subprocess.Popen) -> str:
    for _ in range(3000):
        try:
            with urllib.request.urlopen(url, timeout=5) as reply:
                return reply.read().decode()
        except OSError:
            assert process.poll() is None, "the server ended"
            time.sleep(0.1)
    raise AssertionError("the server does not answer")


def test_a_checkout_runs_its_own_script_with_the_settings_beside_it():
    assert dashboard_script() == ROOT / "app.py"
    assert (dashboard_script().parent / ".streamlit" / "config.toml").exists()


def test_a_wheel_puts_script_and_settings_where_they_are_looked_for():
    packed = PROJECT["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    folder = page.PACKED.relative_to(ROOT)
    assert packed == {"app.py": f"{folder}/app.py", ".streamlit/config.toml": f"{folder}/.streamlit/config.toml"}
    assert all((ROOT / source).exists() for source in packed)


def test_the_command_starts_the_command_line():
    module, name = PROJECT["project"]["scripts"]["headroom"].split(":")
    assert getattr(import_module(module), name)([]) == 2  # no command: bad input


def test_the_wheel_holds_the_package_and_its_data_and_runs_elsewhere(tmp_path):
    wheel = pytest.importorskip("hatchling.builders.wheel")
    pytest.importorskip("hatch_requirements_txt")
    [built] = wheel.WheelBuilder(str(ROOT)).build(directory=str(tmp_path / "wheel"))
    with zipfile.ZipFile(built) as archive:
        archive.extractall(tmp_path / "site")
    held = {str(path.relative_to(tmp_path / "site")) for path in (tmp_path / "site").rglob("*") if path.is_file()}
    listed = subprocess.run(["git", "ls-files", "planner"], capture_output=True, text=True, cwd=ROOT, check=True)
    missing = set(listed.stdout.split()) - held
    assert not missing
    info = next((tmp_path / "site").glob("*.dist-info"))
    needed = {as_tuple(text) for text in Distribution.at(info).requires if "extra ==" not in text}
    assert needed == {as_tuple(text) for text in (ROOT / "requirements.txt").read_text().splitlines()}
    code = "from planner.serve.page import dashboard_script; print(dashboard_script())"
    env = os.environ | {"PYTHONPATH": str(tmp_path / "site")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, cwd=tmp_path, env=env, check=True
    )
    assert Path(done.stdout.strip()) == tmp_path / "site" / page.PACKED.relative_to(ROOT) / "app.py"


def test_serve_answers_from_another_folder_until_it_is_stopped(tmp_path):
    port = free_port()
    command = [sys.executable, "-m", "planner", "serve", "--address", "127.0.0.1", "--port", str(port)]
    env = os.environ | {"PYTHONPATH": str(ROOT)}
    with subprocess.Popen(
        command, cwd=tmp_path, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        try:
            assert answer_of(f"http://127.0.0.1:{port}/_stcore/health", process) == "ok"
        finally:
            process.send_signal(signal.SIGTERM)
        said = process.communicate(timeout=60)[0]
    assert f"http://127.0.0.1:{port}" in said


def test_a_port_out_of_range_is_refused():
    with pytest.raises(InvalidInput) as caught:
        serve_dashboard("127.0.0.1", 99_999)
    assert caught.value.field == "--port"


def test_an_address_of_another_machine_is_refused():
    away = "192.0.2.1"  # a network for documentation (RFC 5737)
    command = [sys.executable, "-m", "planner", "serve", "--address", away, "--port", str(free_port())]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT, check=False)
    assert done.returncode == 2
    assert done.stderr.startswith("error: --address = '192.0.2.1' is not valid")
