"""Imports point one way along the flow, and `import podium` stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "podium"
FLOW = [
    "errors", "columns", "frames", "files", "log", "drafts", "tables", "forms", "policies", "propensities", "io",
    "specs", "sql", "baselines", "estimators", "moments", "display", "estimate", "bootstrap", "pairs", "verdicts",
    "resampling", "gated", "evidence", "prior", "posterior", "judge", "gate", "comparison", "influence", "planning",
    "compare", "states", "assumption", "theory", "scores", "diagnostics", "report", "simulator", "demo", "cli",
]  # fmt: skip


def imported_at_load(module: str) -> set[str]:
    """The podium modules that a module imports when it is loaded."""
    found = set()
    for node in ast.parse((SOURCE / f"{module}.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("podium."):
            found.add(node.module.removeprefix("podium."))
    return found


def test_every_module_has_its_place_in_the_flow() -> None:
    modules = {p.stem for p in SOURCE.glob("*.py")} - {"__init__", "__main__"}
    assert modules == set(FLOW)


def test_imports_point_along_the_flow() -> None:
    for place, module in enumerate(FLOW):
        later = imported_at_load(module) & set(FLOW[place:])
        assert not later, f"{module} imports {later}, which comes later"


def test_every_module_is_in_the_architecture_page() -> None:
    page = (SOURCE.parents[1] / "ARCHITECTURE.md").read_text(encoding="utf-8")
    assert [m for m in FLOW if f"`{m}.py`" not in page] == []


def test_every_file_opens_with_its_idea() -> None:
    for path in SOURCE.glob("*.py"):
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        assert docstring, path.name
        if path.stem != "__main__":
            assert docstring.split("\n")[0].endswith((".", "?", ":")), path.name


def test_import_loads_numpy_and_nothing_heavy() -> None:
    code = (
        "import sys, podium; "
        "heavy = {'scipy', 'pandas', 'polars', 'pyarrow', 'duckdb', 'sklearn', 'narwhals', 'torch'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
