"""Imports point one way along the flow, also inside functions and under TYPE_CHECKING; `import podium` stays light."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

SOURCE = Path(__file__).parents[1] / "src" / "podium"
# A module imports only modules before it. Packages of which others use more than their parts stand behind these.
FLOW = [
    "version", "command.start", "command.signals", "data", "data.errors", "data.connections", "data.columns",
    "data.eligible", "data.scales", "data.times", "data.arguments", "data.facts", "data.toml", "data.files",
    "data.paths",
    "data.nested", "data.frames", "data.owned", "data.coded", "data.progress", "data.roles", "data.grouping",
    "data.prose", "data.arrays", "data.scratch", "data.shipped", "data.spreadsheets", "data.states",
    "outputs.markup", "outputs.display", "data.layout", "data.probabilities", "data.eligible_parts", "data.log",
    "adapters", "adapters.vowpal_lists", "adapters.vowpal_writing", "adapters.vowpal", "data.json_rows",
    "data.read", "data.action_features", "policies.labels", "data.formats", "data.notation", "data.unlikely_states",
    "data.guesses", "data.conversions", "data.tables", "data.refusals", "data.asked", "data.exports",
    "policies.drafts", "policies.recipes", "adapters.sb3_files", "adapters.sb3", "adapters.trees", "adapters.skops",
    "policies.shares", "policies.specs", "policies.sql", "policies.tables", "policies.forms", "policies",
    "policies.batches", "propensities", "propensities.belief", "propensities.frequencies", "propensities.loggers",
    "propensities.logistic", "propensities.preferences", "engines", "engines.memory", "engines.sizes",
    "engines.parts", "engines.arrow", "engines.sample", "engines.fits", "engines.choosing", "engines.spark_errors",
    "engines.spark_files", "engines.spark_tasks", "engines.spark_sets", "engines.texts", "engines.nested",
    "engines.csv_lines", "engines.json_lines", "engines.sources", "engines.duplicates", "engines.duckdb",
    "engines.workers", "engines.spark", "estimates", "estimates.baselines", "estimates.estimators",
    "estimates.learned", "adapters.obp", "propensities.estimated", "propensities.nominal", "propensities.behavior",
    "estimates.moments", "engines.works", "engines.offered", "data.unconverted", "data.scan", "data.opening",
    "data.costs", "policies.cross_fitted", "engines.rows", "engines.wider", "estimates.applied",
    "estimates.bootstrap", "verdicts.looks", "estimates.options", "estimates.terms", "estimates.results",
    "estimates.costs", "estimates.methods", "estimates.evaluate", "verdicts", "verdicts.mixture",
    "verdicts.judgement", "verdicts.pairs", "verdicts.known_costs", "verdicts.classical", "verdicts.action_kernels",
    "verdicts.evidence", "verdicts.dealing", "verdicts.thin", "verdicts.gated", "verdicts.multiplicity",
    "verdicts.prior", "verdicts.clusters", "verdicts.aipw", "verdicts.block", "verdicts.fitting",
    "verdicts.described", "verdicts.posterior", "verdicts.growth", "verdicts.unseen_densities", "verdicts.judge",
    "verdicts.unseen_weight", "verdicts.doubly_robust", "verdicts.recipes", "verdicts.group_block",
    "verdicts.group_posterior", "verdicts.group_rows", "verdicts.balance", "verdicts.leaks", "verdicts.sensitivity",
    "theory.among_eligible", "theory.assumption", "theory.checks", "theory.bounds", "theory", "comparison",
    "comparison.state_columns", "comparison.weights", "comparison.analysis", "comparison.conditions",
    "comparison.coverage", "comparison.influence", "comparison.pair", "comparison.groups", "comparison.by_group",
    "comparison.result", "comparison.planning", "comparison.compare", "comparison.scores", "comparison.spectrum",
    "comparison.diagnostics", "comparison.states", "outputs", "outputs.insights", "outputs.answer",
    "outputs.report.scales", "outputs.plots.canvas", "outputs.plots.checks", "outputs.plots.map",
    "outputs.report.charts", "outputs.plots.answers", "outputs.plots.groups", "outputs.plots",
    "outputs.report.sections", "outputs.report.groups", "outputs.report", "outputs.attached", "worlds",
    "worlds.sampling", "worlds.labelled", "worlds.bandits", "worlds.simulator", "worlds.demo",
    "continuous.baselines", "continuous.kernels", "continuous.specs", "continuous.log", "continuous",
    "episodes.bounds", "episodes.actors", "episodes.interactions", "episodes.proxy", "episodes.recordings",
    "episodes.rollouts", "episodes.steps", "episodes.trajectories", "episodes.log", "episodes", "command",
    "command.completion", "command.arguments", "command.question_keys", "command.question_file", "command.options",
    "command.numbers", "command.exports", "command.question_start", "command.terminal", "command.experiments",
    "command.cli",
]  # fmt: skip
PATHS = ["bandits", "baselines", "estimators", "plots", "report", "simulator"]  # short paths of modules inside folders
EXPERIMENTS = [
    "runner", "compiled", "printed", "drawing", "pages", "synthetic.plan", "synthetic.kernel", "synthetic.details",
    "synthetic.cells", "synthetic.measures", "synthetic.results", "synthetic.verdicts", "synthetic.deviations",
    "synthetic.figures", "synthetic.surfaces", "synthetic.outputs", "synthetic", "classification.sources",
    "classification.download", "classification.datasets", "classification.plan", "classification.kernel",
    "classification.dlm", "classification.zoo", "classification.rounds", "classification.verdicts",
    "classification.cells", "classification.measures", "classification.spread", "classification.results",
    "classification.deviations", "classification.figures", "classification.outputs", "classification", "rl.plan",
    "rl.training", "rl.rollouts", "rl.cells", "rl.readings", "rl.measures", "rl.verdicts", "rl.results",
    "rl.deviations", "rl.figures", "rl.outputs", "rl", "calibration.worlds", "calibration.families",
    "calibration.long_logs", "calibration.peers", "calibration.trials", "calibration.tables", "calibration.bench",
    "calibration.large", "calibration.foresight", "calibration.estimated", "calibration.eligible",
    "calibration.hidden_causes", "calibration.looks", "calibration.described_worlds", "calibration.action_features",
    "calibration.real_trials", "calibration.leaks", "calibration.groups", "calibration.recipes",
    "calibration.everyday.worlds", "calibration.everyday.families", "calibration.everyday.trials",
    "calibration.everyday.rules", "calibration.everyday.units", "calibration.everyday.results",
    "calibration.everyday.tables", "calibration.everyday.__main__", "calibration.everyday", "calibration.__main__",
    "calibration",
]  # fmt: skip
STUDIO = [
    "limits", "disk", "jobs", "questions", "workspaces", "reading", "worker", "uploads", "choices", "changes",
    "downloads", "failures", "security", "visits", "start_pages", "question_pages", "answer_pages", "app",
    "connections", "server",
]  # fmt: skip


def path_of(module: str) -> Path:
    """The file of a module, or of a package that is a module with parts."""
    path = SOURCE / module.replace(".", "/")
    return path / "__init__.py" if path.is_dir() else path.with_suffix(".py")


def modules_in(folder: Path) -> set[str]:
    """All modules below a folder, by their names from there; packages by that of their folder."""
    names = (".".join(path.relative_to(folder).with_suffix("").parts) for path in folder.rglob("*.py"))
    return {name.removesuffix(".__init__") for name in names} - {"__init__"}


def imported(module: str, at_load: bool = False) -> set[str]:
    """The podium modules that a module imports: anywhere in it, or only when it is loaded."""
    tree = ast.parse(path_of(module).read_text(encoding="utf-8"))
    found = set()
    for node in tree.body if at_load else ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.split(".")[0] == "podium":
            package = node.module.removeprefix("podium").lstrip(".")
            for alias in node.names:
                part = f"{package}.{alias.name}".lstrip(".")
                found.add(part if path_of(part).exists() else package)
        elif isinstance(node, ast.Import):
            found |= {alias.name.removeprefix("podium.") for alias in node.names if alias.name.startswith("podium.")}
    return found


def test_every_module_has_its_place() -> None:
    outside = ("experiments", "studio", "calibration")
    library = {m for m in modules_in(SOURCE) if m.split(".")[0] not in outside}
    assert library == {*FLOW, *PATHS, "__main__"}
    assert len(FLOW) == len(set(FLOW))
    assert modules_in(SOURCE / "experiments") == set(EXPERIMENTS)
    assert modules_in(SOURCE / "studio") == set(STUDIO)


def test_imports_point_along_the_flow() -> None:
    for prefix, flow in (("", FLOW), ("experiments.", EXPERIMENTS), ("studio.", STUDIO)):
        names = [f"{prefix}{module}" for module in flow]
        for place, module in enumerate(names):
            later = imported(module) & set(names[place:])
            assert not later, f"{module} imports {later}, which comes later"
    assert "data.log" in imported("data.scan"), "this test looks at nothing"


def test_the_library_never_imports_experiments_or_studio() -> None:
    asks = {"command.experiments": "experiments", "command.cli": "studio"}  # inside their commands alone
    for module in FLOW:
        outside = {m.split(".")[0] for m in imported(module)} & {"experiments", "studio", "calibration", *PATHS}
        assert outside <= {asks.get(module, "")}, module
        assert not {m.split(".")[0] for m in imported(module, at_load=True)} & {"experiments", "studio"}, module


def test_nobody_asks_where_rows_lie_but_data_and_engines() -> None:
    for path in SOURCE.rglob("*.py"):
        if path.parent.name not in ("data", "engines"):
            assert "isinstance(log, ScannedLog" not in path.read_text(encoding="utf-8"), path
            for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
                if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "isinstance":
                    assert "ScannedLog" not in ast.unparse(node), path


def test_every_module_is_in_the_architecture_page() -> None:
    page = (SOURCE.parents[1] / "ARCHITECTURE.md").read_text(encoding="utf-8")
    plain = {m for m in FLOW if path_of(m).name == "__init__.py" and len(path_of(m).read_text().splitlines()) < 3}
    names = [
        f"{m.replace('.', '/')}/" if path_of(m).name == "__init__.py" else f"{m.replace('.', '/')}.py" for m in FLOW
    ]
    assert [
        name for name, m in zip(names, FLOW, strict=True) if f"`{name}`" not in page and m not in {*plain, "version"}
    ] == []
    studies = ("synthetic", "classification", "rl", "calibration", "calibration.everyday")
    paths = {m: m.replace(".", "/") + ("/" if m in studies else ".py") for m in EXPERIMENTS}
    files = [path for m, path in paths.items() if "__main__" not in m]
    assert [f for f in files if f"`{f}`" not in page] == []
    assert [m for m in STUDIO if f"`{m}.py`" not in page] == []


def test_functions_and_modules_are_short() -> None:
    """Functions of up to 80 lines and modules of up to 400 in the library: what is longer hides its steps."""
    for module in FLOW:
        text = path_of(module).read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 400, module
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.FunctionDef):
                assert (node.end_lineno or 0) - node.lineno < 80, f"{module}.{node.name}"


def test_old_paths_of_modules_keep_working() -> None:
    code = (
        "import podium, podium.log, podium.errors, podium.io, podium.scan, podium.display, podium.scores\n"
        "from podium.compare import compare, rank_scores\n"
        "from podium.spectrum import spectrum\n"
        "from podium import estimators, bandits, simulator, report, baselines, plots\n"
        "assert podium.compare is compare and podium.spectrum is spectrum and podium.log.Log is podium.Log\n"
        "assert estimators.DRE is podium.DRE and callable(report.page) and callable(simulator.Programme)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


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
