"""Imports point one way along the flow, and `import podium` stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "podium"
FLOW = [
    "errors", "columns", "frames", "files", "shipped", "log",
    "policies.drafts", "policies.tables", "policies.forms", "policies", "propensities", "propensities.loggers", "io",
    "policies.specs", "policies.sql", "baselines", "propensities.belief", "propensities.estimated",
    "estimators", "terms", "moments",
    "engines.batches", "engines.sums", "engines.kernel", "engines.reading", "progress", "engines", "engines.arrow",
    "engines.memory", "engines.buckets", "engines.sources", "engines.duplicates", "engines.duckdb", "engines.workers",
    "engines.spark", "scan",
    "markup", "display", "estimate", "bootstrap",
    "verdicts.pairs", "verdicts", "verdicts.resampling", "verdicts.unseen", "verdicts.gated", "verdicts.evidence",
    "verdicts.dealing", "verdicts.prior", "verdicts.fitting", "verdicts.posterior", "verdicts.judge", "large",
    "large.findings", "large.wider", "study",
    "verdicts.gate",
    "comparison", "influence", "planning", "compare", "large.bystate", "states", "assumption", "theory", "scores",
    "diagnostics", "large.glance", "insights", "answer", "spectrum", "report.scales", "report.charts", "report.sections",
    "report", "plots.canvas", "plots.answers", "plots.map", "plots.checks", "plots",
    "sampling", "labelled", "bandits", "simulator", "demo", "continuous",
    "episodes.proxy", "episodes.bounds", "episodes.sb3", "episodes.actors", "episodes.recordings", "episodes.steps",
    "episodes.rollouts", "episodes.trajectories", "episodes", "completion", "arguments", "cli",
]  # fmt: skip
EXPERIMENTS = [
    "runner", "compiled", "printed", "drawing", "pages", "synthetic.plan", "synthetic.kernel",
    "synthetic.details", "synthetic.cells", "synthetic.measures", "synthetic.results", "synthetic.verdicts",
    "synthetic.deviations", "synthetic.figures", "synthetic.surfaces", "synthetic.outputs", "synthetic",
    "classification.sources", "classification.download", "classification.datasets", "classification.plan",
    "classification.kernel", "classification.dlm", "classification.zoo", "classification.rounds",
    "classification.verdicts", "classification.cells", "classification.measures", "classification.spread",
    "classification.results", "classification.deviations", "classification.figures", "classification.outputs",
    "classification",
    "rl.plan", "rl.training", "rl.rollouts", "rl.cells", "rl.readings", "rl.measures", "rl.verdicts", "rl.results",
    "rl.deviations", "rl.figures", "rl.outputs", "rl",
]  # fmt: skip
STUDIO = [
    "limits", "jobs", "questions", "workspaces", "guesses", "reading", "worker", "uploads", "choices", "changes",
    "downloads", "security", "visits", "start_pages", "question_pages", "answer_pages", "app", "connections",
    "server",
]  # fmt: skip


def path_of(module: str) -> Path:
    """The file of a module, or of a package that is a module with parts."""
    path = SOURCE / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def imports(body: Iterable[ast.AST]) -> set[str]:
    """The podium modules that some statements import."""
    found = set()
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("podium."):
            package = node.module.removeprefix("podium.")
            parts = {f"{package}.{alias.name}" for alias in node.names}
            found |= {part for part in parts if path_of(part).exists()} or {package}
        elif isinstance(node, ast.Import):
            found |= {alias.name.removeprefix("podium.") for alias in node.names if alias.name.startswith("podium.")}
    return found


def imported_at_load(module: str) -> set[str]:
    """The podium modules that a module imports when it is loaded."""
    return imports(ast.parse(path_of(module).read_text(encoding="utf-8")).body)


def imported_anywhere(module: str) -> set[str]:
    """The podium modules that a module imports, also inside its functions."""
    return imports(ast.walk(ast.parse(path_of(module).read_text(encoding="utf-8"))))


def test_every_module_has_its_place_in_the_flow() -> None:
    modules = {p.stem for p in SOURCE.glob("*.py")} - {"__init__", "__main__"}
    assert modules == {m for m in FLOW if path_of(m).parent == SOURCE}
    for package in [m for m in FLOW if path_of(m).name == "__init__.py"]:
        parts = {f"{package}.{p.stem}" for p in (SOURCE / package).glob("*.py")} - {f"{package}.__init__"}
        assert parts == {m for m in FLOW if m.startswith(f"{package}.")}


def test_every_module_of_the_experiments_has_its_place() -> None:
    folder = SOURCE / "experiments"
    names = [str(p.relative_to(folder).with_suffix("")).replace("/", ".") for p in folder.rglob("*.py")]
    assert {name.removesuffix(".__init__") for name in names} - {"__init__"} == set(EXPERIMENTS)


def test_the_library_never_imports_the_experiments() -> None:
    for module in [m for m in FLOW if m != "cli"]:
        assert not {m for m in imported_anywhere(module) if m.startswith("experiments")}, module
    assert not {m for m in imported_at_load("cli") if m.startswith("experiments")}
    assert {m for m in imported_anywhere("cli") if m.startswith("experiments")}, "this test looks at nothing"


def test_adapters_are_loaded_when_they_are_used() -> None:
    for module in FLOW:
        assert not {m for m in imported_at_load(module) if m.startswith("adapters")}, module


def test_imports_of_the_experiments_point_one_way() -> None:
    flow = [f"experiments.{module}" for module in EXPERIMENTS]
    for place, module in enumerate(flow):
        later = imported_at_load(module) & set(flow[place:])
        assert not later, f"{module} imports {later}, which comes later"


def test_every_module_of_the_studio_has_its_place() -> None:
    assert {p.stem for p in (SOURCE / "studio").glob("*.py")} - {"__init__"} == set(STUDIO)


def test_the_library_never_imports_the_studio() -> None:
    for module in [m for m in FLOW if m != "cli"]:
        assert not {m for m in imported_anywhere(module) if m.startswith("studio")}, module
    assert not {m for m in imported_at_load("cli") if m.startswith("studio")}
    assert {m for m in imported_anywhere("cli") if m.startswith("studio")}, "this test looks at nothing"


def test_imports_of_the_studio_point_one_way() -> None:
    flow = [f"studio.{module}" for module in STUDIO]
    for place, module in enumerate(flow):
        later = imported_at_load(module) & set(flow[place:])
        assert not later, f"{module} imports {later}, which comes later"


def test_imports_point_along_the_flow() -> None:
    for place, module in enumerate(FLOW):
        later = imported_at_load(module) & set(FLOW[place:])
        assert not later, f"{module} imports {later}, which comes later"


def test_every_module_is_in_the_architecture_page() -> None:
    page = (SOURCE.parents[1] / "ARCHITECTURE.md").read_text(encoding="utf-8")
    packages = {m for m in FLOW if path_of(m).name == "__init__.py"}
    names = [f"{m}/" if m in packages else f"{m.replace('.', '/')}.py" for m in FLOW]
    assert [name for name in names if f"`{name}`" not in page] == []
    studies = ("synthetic", "classification", "rl")
    files = [f"{m}/" if m in studies else m.replace(".", "/") + ".py" for m in EXPERIMENTS]
    assert [f for f in files if f"`{f}`" not in page] == []
    assert [m for m in STUDIO if f"`{m}.py`" not in page] == []


def test_every_file_opens_with_its_idea() -> None:
    for path in SOURCE.rglob("*.py"):
        docstring = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8")))
        assert docstring, path.name
        if path.stem != "__main__":
            assert docstring.split("\n")[0].endswith((".", "?", ":")), path.name


def test_import_loads_numpy_and_nothing_heavy() -> None:
    code = (
        "import sys, podium; "
        "heavy = {'scipy', 'pandas', 'polars', 'pyarrow', 'duckdb', 'sklearn', 'narwhals', 'torch', 'numba', "
        "'matplotlib', 'joblib', 'distributed', 'starlette', 'jinja2', 'uvicorn', 'podium.studio', "
        "'podium.experiments'};"
        "print(sorted(heavy & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
