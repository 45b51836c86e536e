"""What the package promises of itself: its version, types and citation, and the lowest versions it is tested with."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import podium

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
REQUIREMENT = re.compile(r"(?P<name>[A-Za-z0-9-]+)>=(?P<version>[0-9.]+)")


def lower_bounds() -> dict[str, str]:
    """Every package that pyproject.toml names with its lowest version, extras included."""
    lines = [*PROJECT["dependencies"], *(line for extra in PROJECT["optional-dependencies"].values() for line in extra)]
    return {m["name"]: m["version"] for m in map(REQUIREMENT.match, lines) if m}


def lowest_versions() -> dict[str, str]:
    """The versions of .ci/lowest.txt."""
    lines = (ROOT / ".ci" / "lowest.txt").read_text(encoding="utf-8").splitlines()
    return dict(line.split("==") for line in lines if line and not line.startswith("#"))


def parts(version: str) -> tuple[int, ...]:
    numbers = [int(n) for n in version.split(".")]
    while numbers and numbers[-1] == 0:
        numbers.pop()
    return tuple(numbers)


def test_the_lowest_versions_that_are_tested_are_the_bounds_that_are_declared() -> None:
    bounds, tested = lower_bounds(), lowest_versions()
    assert {name for name in tested if name not in bounds} == {"pyparsing"}
    assert {n: v for n, v in tested.items() if n in bounds and parts(v) != parts(bounds[n])} == {}


def test_every_dependency_of_the_core_is_tested_at_its_lowest_version() -> None:
    core = {re.split("[>=<]", line)[0] for line in PROJECT["dependencies"]}
    assert core <= set(lowest_versions())


def test_the_citation_names_this_version_and_the_paper() -> None:
    citation = (ROOT / "CITATION.cff").read_text(encoding="utf-8")
    assert f"\nversion: {podium.__version__}\n" in citation
    title = "Offline Policy Comparison under Limited Historical Agent-Environment Interactions"
    assert f'"{title}"' in citation
    assert [name for name in ("Dereventsov", "Daws", "Webster") if f"family-names: {name}" not in citation] == []


def test_the_changelog_has_this_version() -> None:
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert f"\n## [{podium.__version__}]" in changelog


def test_every_folder_of_shipped_data_names_its_sources_and_licenses() -> None:
    folders = {path.parent for path in (ROOT / "src" / "podium").rglob("*.csv.gz")}
    assert {folder.name for folder in folders} == {"uci_tables", "real_trial_tables"}
    for folder in folders:
        readme = (folder / "README.md").read_text(encoding="utf-8")
        assert "license" in readme
        assert [path.name for path in folder.glob("*.csv.gz") if f"| `{path.name.split('.')[0]}` |" not in readme] == []


def test_no_file_looks_for_anything_beside_the_clone() -> None:
    files = [path for folder in ("src", "tests", "bench", "docs") for path in (ROOT / folder).rglob("*.py")]
    places = [
        (path, path.parents[int(steps)])
        for path in files
        for steps in re.findall(r"__file__\)\.(?:resolve\(\)\.)?parents\[(\d)\]", path.read_text(encoding="utf-8"))
    ]
    assert len(places) > 10, "this test looks at nothing"
    assert [path.name for path, place in places if not place.is_relative_to(ROOT)] == []


def test_the_package_is_marked_as_typed() -> None:
    assert (ROOT / "src" / "podium" / "py.typed").exists()
    assert "Typing :: Typed" in PROJECT["classifiers"]
