"""Compiling the loop: on an installation that cannot be written to, with a damaged cache, on a full disk."""

import hashlib
import importlib.util
from pathlib import Path

import numba
import pytest

from planner.simulation import kernel
from planner.simulation.kernel import compiling


def module_of(source: Path):
    spec = importlib.util.spec_from_file_location("part", source)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_a_part_runs_inside_the_loop_only():
    twice = compiling.compiled(lambda x: 2 * x)
    entry = numba.njit(lambda x: twice(x) + 1)
    assert entry(3) == 7
    assert twice.py_func(3) == 6


def test_a_read_only_installation_compiles_in_memory(monkeypatch):
    plain = numba.njit

    def cannot_cache(*args, cache=False, **options):
        if cache:
            raise RuntimeError("cannot cache function: no locator available")
        return plain(*args, **options)

    monkeypatch.setattr(numba, "njit", cannot_cache)
    assert compiling.compiled_entry(lambda x: x + 1)(1) == 2


@pytest.mark.parametrize("damage", [lambda data: b"", lambda data: data[: len(data) // 2], lambda data: data[::-1]])
@pytest.mark.parametrize("kind", ["nbi", "nbc"])
def test_a_damaged_compile_cache_heals(kind, damage, tmp_path, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR", raising=False)
    source = tmp_path / "part.py"
    source.write_text("def twice(x):\n    return 2 * x\n")

    def load():
        return compiling.compiled_entry(module_of(source).twice)

    assert load()(3) == 6
    (file,) = (tmp_path / "__pycache__").glob(f"*.{kind}")
    whole = file.read_bytes()
    file.write_bytes(damage(whole))
    entry = load()
    assert entry(3) == 6
    assert sum(entry.stats.cache_hits.values()) == 0  # compiled anew, not what lay there
    again = load()
    assert again(3) == 6
    assert sum(again.stats.cache_hits.values()) == 1  # and kept


def test_a_full_disk_does_not_stop_the_simulator(tmp_path, monkeypatch):
    def full(*_arguments):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("planner.simulation.kernel.compiling._CheckedFile._open_for_write", full)
    source = tmp_path / "part.py"
    source.write_text("def thrice(x):\n    return 3 * x\n")
    assert compiling.compiled_entry(module_of(source).thrice)(3) == 9


def test_the_cache_on_disk_knows_all_sources_of_the_loop():
    # numba looks at one file only, so the name under which it files machine code holds a digest of all of them.
    digest = compiling.source_digest()
    for entry in (kernel.advance, kernel.dispatch, kernel.count_outstanding):
        assert digest in entry.py_func.__qualname__
    simulation = Path(kernel.__file__).parents[1]
    files = [*sorted((simulation / "kernel").glob("*.py")), simulation / "state.py", simulation / "records.py"]
    assert hashlib.sha256(b"".join(file.read_bytes() for file in files)).hexdigest().startswith(digest)
