"""The package as users get it: built, installed alone in a clean environment, and used from another folder."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path

import pytest

import podium

pytestmark = pytest.mark.release

ROOT = Path(__file__).parents[2]
MEGABYTE = 1_000_000
MOST = 200 * MEGABYTE
DATA = {
    f"podium/{folder}/{file}"
    for folder, tables in {
        "experiments/classification/uci_tables": ("abalone", "algerian", "ecoli", "glass", "winequality"),
        "experiments/calibration/real_trial_tables": ("dating", "gums", "insurance", "party", "throat", "training"),
    }.items()
    for file in ("README.md", *(f"{table}.csv.gz" for table in tables))
}
CORE = {"numpy", "scipy", "narwhals", "threadpoolctl", "shtab", "podium"}
LOG = "age,action,reward\n30,sms,1\n40,call,0\n50,sms,1\n60,call,1\n70,call,1\n35,sms,0\n"
USER = """
import podium

log = podium.Log([0, 0, 1, 1], ["a", "b", "a", "b"], [1.0, 0.1, 0.9, 0.2])
result: podium.Comparison = podium.compare(log, {"a": "constant:a", "b": "constant:b"}, level=0.9)
best: str = result.best
low: float | None = result.pairs[0].interval.low if result.pairs[0].interval is not None else None
continuous = podium.continuous.ContinuousLog([0, 1], [0.1, 0.5], [1.0, 0.5], densities=[1.0, 1.0])
episode = podium.episodes.Episode([[0.0], [0.5]], [0.1, 0.2], [1.0, 2.0])
rows: int | None = podium.plan(log, {"a": "constant:a", "b": "constant:b"}, difference=0.1).pairs[0].rows_80
"""
WRONG = "import podium\n\nbest: int = podium.compare(podium.Log([0], ['a'], [1.0])).best\n"


def run(*command: str | Path, folder: Path | None = None, status: int = 0) -> subprocess.CompletedProcess[str]:
    done = subprocess.run([str(c) for c in command], cwd=folder, capture_output=True, text=True, timeout=1800)
    assert done.returncode == status, f"{command}\n{done.stdout}{done.stderr}"
    return done


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist, and the wheel that was built from it."""
    folder = tmp_path_factory.mktemp("dist")
    run(sys.executable, "-m", "build", "--outdir", folder, ROOT)
    return folder


@pytest.fixture(scope="module")
def wheel(built: Path) -> Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment that holds the wheel and what it depends on, nothing else."""
    home = tmp_path_factory.mktemp("clean")
    run(sys.executable, "-m", "venv", "--without-pip", home)
    path = home / "bin" / "python"
    # Bytecode is written when a module is first used, not for all of SciPy's tests.
    run(sys.executable, "-m", "pip", "--python", path, "install", "--quiet", "--no-compile", wheel)
    return path


def test_the_sdist_holds_all_that_the_tests_and_the_docs_need(built: Path) -> None:
    (sdist,) = built.glob("*.tar.gz")
    with tarfile.open(sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = {
        "LICENSE", "README.md", "CHANGELOG.md", "SECURITY.md", "CITATION.cff", "Makefile", "mkdocs.yml",
        "docs/index.md", "tests/release/test_wheel.py", ".ci/lowest.txt", "src/podium/py.typed", "pyproject.toml",
    }  # fmt: skip
    assert wanted - names == set()
    assert {f"src/{name}" for name in DATA} - names == set()
    assert not [name for name in names if name.startswith((".venv", "site/", "dist/"))]


def test_the_wheel_holds_the_package_alone(wheel: Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert {name.split("/")[0] for name in names} == {"podium", f"podium-{podium.__version__}.dist-info"}
    assert "podium/py.typed" in names
    assert [name for name in names if name.endswith("LICENSE")]
    files = [p for p in (ROOT / "src" / "podium").rglob("*") if p.is_file() and "__pycache__" not in p.parts]
    assert {p.relative_to(ROOT / "src").as_posix() for p in files} - set(names) == set()
    assert {"podium/outputs/report/page.css", "podium/outputs/report/page.js", *DATA} <= set(names)


def test_the_metadata_names_the_version_and_few_requirements(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        (metadata,) = (n for n in archive.namelist() if n.endswith("/METADATA"))
        text = archive.read(metadata).decode()
    assert f"\nVersion: {podium.__version__}\n" in text
    assert "\nDescription-Content-Type: text/markdown\n" in text
    assert {"numpy", "scipy", "narwhals", "threadpoolctl", "shtab"} == set(
        re.findall(r"^Requires-Dist: ([a-z-]+)[^;\n]*$", text, re.MULTILINE)
    )


def test_the_core_is_small_and_has_few_dependencies(python: Path, tmp_path: Path) -> None:
    (tmp_path / "log.csv").write_text(LOG)
    run(
        python.parent / "podium",
        "compare",
        "log.csv",
        "--policy",
        "a=uniform",
        "--policy",
        "b=constant:sms",
        folder=tmp_path,
    )
    code = (
        "import importlib.metadata as m, json, sysconfig;"
        "print(json.dumps([sorted({d.name for d in m.distributions()}), sysconfig.get_path('platlib')]))"
    )
    names, place = json.loads(run(python, "-c", code, folder=tmp_path).stdout)
    assert set(names) == CORE
    size = sum(path.stat().st_size for path in Path(place).rglob("*") if path.is_file())
    print(f"the core and its dependencies, used once: {size / MEGABYTE:.0f} MB")
    assert size < MOST


def test_the_command_works_from_any_folder(python: Path, tmp_path: Path) -> None:
    command = python.parent / "podium"
    assert run(command, "--version", folder=tmp_path).stdout == f"podium {podium.__version__}\n"
    shown = run(command, "demo", folder=tmp_path).stdout
    assert "Of 10 pairs" in shown
    assert (tmp_path / "podium-demo" / "report.html").stat().st_size > 1000
    gate = ("compare", "podium-demo/log.csv", "--gate", "personalised > current")
    run(command, *gate, folder=tmp_path)
    run(command, "compare", "podium-demo/log.csv", "--gate", "random > current", folder=tmp_path, status=3)
    for shell in ("bash", "zsh", "fish"):
        assert "evaluate" in run(command, "completion", shell, folder=tmp_path).stdout


def test_the_shipped_data_can_be_read_with_the_core_alone(python: Path, tmp_path: Path) -> None:
    code = (
        "from podium.experiments.calibration.real_trials import load_trial, trial_names;"
        "from podium.experiments.classification.datasets import load_dataset;"
        "print([len(load_trial(name).rewards) for name in trial_names()]);"
        "print([len(load_dataset(n).labels) for n in ('abalone', 'algerian', 'ecoli', 'glass', 'winequality')])"
    )
    shown = run(python, "-c", code, folder=tmp_path).stdout
    assert shown == "[725, 659, 1378, 1198, 233, 722]\n[4177, 244, 336, 214, 1599]\n"


def test_nothing_heavy_is_there_to_be_imported(python: Path, tmp_path: Path) -> None:
    code = "import sys, podium; print(sorted({name.partition('.')[0] for name in sys.modules} & set(sys.argv[1:])))"
    assert run(python, "-c", code, *sorted(CORE - {"numpy", "podium"}), folder=tmp_path).stdout == "[]\n"


@pytest.mark.parametrize(
    ("arguments", "line"),
    [
        (["compare", "log.csv", "--policy", "a=uniform", "--policy", "b=sql:'sms'"], "podium[duckdb]"),
        (["compare", "log.parquet", "--policy", "a=uniform"], "podium[parquet]"),
        (["compare", "log.csv", "--policy", "a=uniform", "--policy", "b=model.skops"], "podium[sklearn]"),
        (["reproduce", "synthetic", "--quick"], "podium[experiments]"),
    ],
)
def test_what_is_missing_is_named_with_the_line_that_installs_it(
    arguments: list[str], line: str, python: Path, tmp_path: Path
) -> None:
    (tmp_path / "log.csv").write_text(LOG)
    (tmp_path / "log.parquet").write_bytes(b"PAR1")
    (tmp_path / "model.skops").write_bytes(b"PK")
    error = run(python.parent / "podium", *arguments, folder=tmp_path, status=2).stderr
    assert error.endswith(f"Hint: run: pip install '{line}'\n")


def test_a_users_types_are_checked_against_the_installed_package(python: Path, tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(USER)
    (tmp_path / "wrong.py").write_text(WRONG)
    mypy = (sys.executable, "-m", "mypy", "--strict", "--python-executable", python, "--cache-dir", tmp_path / "cache")
    run(*mypy, "user.py", folder=tmp_path)
    found = run(*mypy, "wrong.py", folder=tmp_path, status=1).stdout
    assert 'expression has type "str", variable has type "int"' in found
