"""The habits of the project: how it is installed, tested and cited says the same everywhere."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest
import yaml

ROOT = Path(__file__).parents[1]
PYPROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
PAGES = [*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md")]
WORKFLOW = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text(encoding="utf-8"))
TARGET = re.compile(r"^(?P<name>[a-z-]+):(?P<needs>[^#\n]*)##", re.MULTILINE)


def text(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def targets() -> dict[str, list[str]]:
    """Every documented target of the Makefile, with what it needs."""
    return {m["name"]: m["needs"].split() for m in TARGET.finditer(text("Makefile"))}


# --- installing --------------------------------------------------------------------------------------------------


def test_the_docs_install_from_the_clone_and_name_extras_that_exist() -> None:
    """The project called podium on the Python Package Index is another one."""
    installs = [line for page in PAGES for line in re.findall(r"pip install [^`\n]*", page.read_text(encoding="utf-8"))]
    assert len(installs) > 10
    assert [line for line in installs if re.search(r"\bpodium\b", line)] == []
    named = {extra for line in installs for group in re.findall(r"\.\[([a-z,]+)\]", line) for extra in group.split(",")}
    assert named <= set(PYPROJECT["project"]["optional-dependencies"])


def test_the_demo_installs_the_core_and_the_tests_nothing_heavy() -> None:
    wanted = targets()
    assert wanted["demo"] == [".venv/.core"]
    assert wanted["test"] == [".venv/.test"]
    extras = PYPROJECT["project"]["optional-dependencies"]
    heavy = {"spark", "cluster", "rl", "minari", "docs"}
    assert heavy <= set(extras)
    asked, found = {"test", "lint"}, set()
    while asked:
        found |= (extra := {asked.pop()})
        lines = " ".join(line for name in extra for line in extras[name])
        asked |= {e for group in re.findall(r"podium\[([a-z,]+)\]", lines) for e in group.split(",")} - found
    assert found & heavy == set()
    assert {"duckdb", "sklearn", "plots", "studio", "experiments"} <= found


# --- testing -----------------------------------------------------------------------------------------------------


def test_all_tests_are_those_of_make_test_and_make_test_all() -> None:
    """Every marker that plain pytest leaves out has a target, and `make test-all` runs all of them."""
    options = PYPROJECT["tool"]["pytest"]["ini_options"]
    left_out = re.findall(r"not (\w+)", " ".join(options["addopts"]))
    described = {line.partition(":")[0]: line for line in options["markers"]}
    assert [marker for marker in left_out if not described[marker].endswith(f"(make test-{marker})")] == []
    wanted = targets()
    assert {f"test-{marker}" for marker in left_out} <= set(wanted["test-all"])
    assert {name for name in wanted if name.startswith("test-")} == {*wanted["test-all"], "test-all"} - {"docs"}
    assert re.findall(r"^make (\S+)", text(".ci/run"), re.MULTILINE) == ["lint", "test", "test-all"]


def test_every_target_is_in_the_guide() -> None:
    guide = text("CONTRIBUTING.md")
    assert [name for name in targets() if name != "help" and f"| `make {name}` |" not in guide] == []


def test_the_workflow_runs_everything_and_tests_every_python_on_every_system() -> None:
    names = [c.rpartition(" ")[2] for c in PYPROJECT["project"]["classifiers"] if "Python :: 3." in c]
    matrix = WORKFLOW["jobs"]["tests"]["strategy"]["matrix"]
    assert matrix["python"] == names == ["3.11", "3.12", "3.13", "3.14"]
    assert {system.partition("-")[0] for system in matrix["os"]} == {"ubuntu", "macos", "windows"}
    assert ".ci/run" in [step.get("run") for step in WORKFLOW["jobs"]["all"]["steps"]]
    commands = "\n".join(step.get("run", "") for step in WORKFLOW["jobs"]["tests"]["steps"])
    beside = re.search(r"^BESIDE := (.*)$", text("Makefile"), re.MULTILINE)
    assert beside is not None
    assert f"python -m pytest {beside[1]}" in commands
    assert '".[test]"' in commands


def test_hooks_are_the_checks_of_make_lint() -> None:
    config = yaml.safe_load(text(".pre-commit-config.yaml"))
    hooks = [hook["entry"].split() for repository in config["repos"] for hook in repository["hooks"]]
    recipe = re.findall(
        r"^\t\$\(BIN\)/(\w+) ?(.*)$", text("Makefile").partition("\nlint:")[2].partition("\n\n")[0], re.M
    )
    assert {entry[0].removeprefix(".venv/bin/") for entry in hooks} == {tool for tool, _ in recipe} == {"ruff", "mypy"}
    assert [entry for entry in hooks if entry[0] == ".venv/bin/mypy"] == [[".venv/bin/mypy", "--strict", "src"]]


SAMPLES = {
    "test_sample.py": (
        "import pytest\n"
        "def test_fine(): pass\n"
        "def test_skipped(): pytest.skip('no data')\n"
        "@pytest.mark.skipif(True, reason='no card')\n"
        "def test_not_here(): pass\n"
        "@pytest.mark.heavy\n"
        "@pytest.mark.parametrize('n', range(3))\n"
        "def test_heavy(n): import no_such_package\n"
        "@pytest.mark.slow\n"
        "def test_slow(): pass\n"
        "@pytest.mark.platforms('another system')\n"
        "def test_elsewhere(): pass\n"
    ),
    "test_file.py": "import pytest\npytest.importorskip('no_such_package')\n",
}


def run_samples(folder: Path, *options: str) -> str:
    """What pytest prints about the samples, with the settings of the project."""
    shutil.copy(ROOT / "tests" / "conftest.py", folder)
    shutil.copy(ROOT / "pyproject.toml", folder)
    (folder / "tests").mkdir()
    for name, content in SAMPLES.items():
        (folder / "tests" / name).write_text(content)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "--continue-on-collection-errors"]
    return subprocess.run([*command, *options, "tests"], cwd=folder, capture_output=True, text=True, check=False).stdout


@pytest.mark.parametrize("workers", ["0", "1"])
def test_a_skip_is_a_failure_and_a_run_says_what_it_left_out(tmp_path: Path, workers: str) -> None:
    printed = run_samples(tmp_path, "-n", workers)
    assert "nothing may be skipped: Skipped: no data" in printed
    assert "nothing may be skipped: Skipped: no card" in printed
    assert "nothing may be skipped: Skipped: could not import 'no_such_package'" in printed
    assert "3 heavy tests     run: make test-heavy" in printed
    assert "1 slow tests      run: make test-slow" in printed
    assert "make test-system" not in printed
    assert "elsewhere" not in printed


def test_a_missing_package_fails_the_tests_that_were_asked_for(tmp_path: Path) -> None:
    printed = run_samples(tmp_path, "-m", "heavy")
    assert "3 failed" in printed
    assert "No module named 'no_such_package'" in printed


# --- citing ------------------------------------------------------------------------------------------------------


def test_the_paper_has_one_identifier() -> None:
    citation = yaml.safe_load(text("CITATION.cff"))["preferred-citation"]
    identifier = citation["identifiers"][0]["value"].removeprefix("arXiv:")
    assert citation["url"] == PYPROJECT["project"]["urls"]["Paper"] == f"https://arxiv.org/abs/{identifier}"
    assert citation["doi"] == f"10.48550/arXiv.{identifier}"
    for page in ("README.md", "docs/paper.md"):
        assert f"[arXiv:{identifier}]({citation['url']})" in text(page)


# --- the container -----------------------------------------------------------------------------------------------


def test_the_container_copies_what_it_may_see() -> None:
    allowed = {line[1:] for line in text(".dockerignore").splitlines() if line.startswith("!")}
    copied = {
        word for line in re.findall(r"^COPY (?!--from)(.*)$", text("Dockerfile"), re.M) for word in line.split()[:-1]
    }
    assert copied == allowed == {"pyproject.toml", "README.md", "LICENSE", "src"}
    assert all((ROOT / name).exists() for name in copied)
    assert PYPROJECT["project"]["readme"] in copied


# --- security ----------------------------------------------------------------------------------------------------


def test_every_promise_of_security_names_tests_that_exist() -> None:
    rows = [line for line in text("SECURITY.md").split("\n") if line.startswith("| ")][1:]
    assert len(rows) >= 10
    for row in rows:
        named = re.findall(r"`(tests/[^`]*)`", row)
        assert named, row
        assert [name for name in named if not (ROOT / name).is_file()] == []
