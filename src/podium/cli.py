"""The command `podium`: demo, compare, evaluate, spectrum, states, check, plan, studio, reproduce, completion.

Exit codes: 0 done; 2 bad input or usage (message on stderr, nothing written); with --gate 0 holds, 3 cannot tell,
4 the opposite holds; 130 interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import csv
import io
import json
import os
import shlex
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, NoReturn

from podium import __version__
from podium.compare import compare, plan
from podium.comparison import Comparison
from podium.completion import SHELLS
from podium.diagnostics import diagnose
from podium.display import Table, printable, wrap
from podium.engines import NAMES
from podium.errors import PodiumError
from podium.estimate import evaluate
from podium.estimators import ESTIMATORS
from podium.log import Log
from podium.policies.specs import FORMS
from podium.progress import show_progress
from podium.propensities.loggers import Loggers
from podium.scan import ScannedLog, choose_engine, scan_log
from podium.spectrum import spectrum
from podium.states import compare_states


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; every error that a user can cause becomes a message, never a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a label that the terminal cannot show is no reason to stop
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        options = build_parser().parse_args(arguments)
        options.command = shlex.join(["podium", *(sys.argv[1:] if arguments is None else arguments)])
        result: int = options.run(options)
        sys.stdout.flush()
        return result
    except PodiumError as error:
        print("\n".join(printable(line) for line in f"podium: {error}".split("\n")), file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("podium: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader (head, less) has seen enough
        drop_output()
        return 0
    except OSError as error:
        drop_output()
        print(f"podium: cannot write the answer: {error.strerror}\n\nHint: make room for it.", file=sys.stderr)
        return 2
    except MemoryError:
        print("podium: the log does not fit into memory\n\nHint: use fewer rows or columns.", file=sys.stderr)
        return 2
    except Exception as error:
        if os.environ.get("PODIUM_DEBUG"):
            raise
        what = f"{type(error).__name__}: {error}"
        hint = "this is a fault of podium, not of your log; PODIUM_DEBUG=1 shows where it happened."
        print(f"podium: {printable(what)}\n\nHint: {hint}", file=sys.stderr)
        return 2


def drop_output() -> None:
    """What is still to be written goes nowhere, so that Python does not complain at its end."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# --- commands --------------------------------------------------------------------------------------------------


def run_compare(options: argparse.Namespace) -> int:
    judged = {"bootstrap": options.bootstrap, **judge_options(options)}
    if options.episodes:
        result = compare_episodes(options, judged)
    else:
        refuse_options(options, ("bounds", "horizon"), "needs --episodes")
        result = compare(open_log(options), policies_of(options), **judged)
    gate = result.gate(options.gate) if options.gate is not None else None
    if options.html is not None:
        source = Path(options.log).name
        result.report(options.html, command=options.command, source=source, difference=options.difference)
    show(result, options, {} if gate is None else {"gate": gate.to_dict()})
    if not options.json:
        if gate is not None:
            print("\n" + wrap(gate.sentence(), terminal_width(), ""))
        if options.html:
            print(f"\nReport: {options.html}")
    return gate.exit_code if gate is not None else 0


def compare_episodes(options: argparse.Namespace, judged: dict[str, Any]) -> Comparison:
    """The comparison on a file of recorded steps."""
    from podium.episodes import compare as compare_recorded
    from podium.episodes import read

    refuse_options(options, ("propensity", "time", "unit", "text", "actions"), "has no meaning with --episodes")
    steps = read(options.log, action=options.action, reward=options.reward, observation=options.state or ())
    judged["estimator"] = judged["estimator"] or "LDE"
    return compare_recorded(steps, policies_of(options) or {}, bounds=options.bounds, horizon=options.horizon, **judged)


def refuse_options(options: argparse.Namespace, names: Sequence[str], why: str) -> None:
    for name in names:
        if getattr(options, name) is not None:
            raise PodiumError(f"--{name} {why}", hint="see podium compare --help.")


def run_plan(options: argparse.Namespace) -> int:
    show(
        plan(open_log(options), policies_of(options), difference=options.difference, **judge_options(options)), options
    )
    return 0


def run_evaluate(options: argparse.Namespace) -> int:
    result = evaluate(
        open_log(options),
        policies_of(options),
        options.estimator or list(ESTIMATORS),
        baseline_of(options.baseline),
        behavior=behavior_of(options),
        **method_options(options),
    )
    show(result, options)
    return 0


def run_spectrum(options: argparse.Namespace) -> int:
    result = spectrum(
        open_log(options),
        policies_of(options),
        [baseline_of(text) for text in options.baseline or ("mean", "linear")],
        options.estimator or "all",
        level=options.level,
        lower_is_better=options.lower_is_better,
        behavior=behavior_of(options),
        seed=options.seed,
    )
    show(result, options)
    return 0


def run_states(options: argparse.Namespace) -> int:
    result = compare_states(
        open_log(options),
        policies_of(options),
        options.estimator,
        baseline_of(options.baseline),
        lower_is_better=options.lower_is_better,
        behavior=behavior_of(options),
        **method_options(options),
    )
    show(result, options)
    return 0


def run_check(options: argparse.Namespace) -> int:
    show(diagnose(open_log(options), policies_of(options), **judge_options(options)), options)
    return 0


def run_demo(options: argparse.Namespace) -> int:
    from podium.demo import run_demo as run

    run(Path(options.out), terminal_width())
    return 0


def run_studio(options: argparse.Namespace) -> int:
    from podium.studio.server import ServerOptions, serve

    serve(ServerOptions(options.host, options.port, not options.no_browser, options.max_upload, options.max_rows))
    return 0


def run_reproduce_synthetic(options: argparse.Namespace) -> int:
    from podium.experiments.synthetic import reproduce
    from podium.experiments.synthetic.outputs import agreement_table

    done = reproduce(
        options.out,
        **experiment_options(options),
        rewards=options.reward or ("1.1", "1.2"),
        verdict_tests=options.verdict_tests,
    )
    return show_written(done.folder, agreement_table(done.tables) if done.tables else None)


def run_reproduce_classification(options: argparse.Namespace) -> int:
    from podium.experiments.classification import reproduce
    from podium.experiments.classification.outputs import agreement_table, groups

    given = {"datasets": options.datasets, "policies": options.policies}
    named: dict[str, Any] = {name: split(text, f"--{name}") for name, text in given.items() if text is not None}
    done = reproduce(
        options.out,
        **experiment_options(options),
        readings=None if options.reading is None else [options.reading],
        data_dir=options.data_dir,
        verdict_logs=options.verdict_logs,
        **named,
    )
    return show_written(done.folder, agreement_table(done.tables) if groups(done.tables) else None)


def run_reproduce_rl(options: argparse.Namespace) -> int:
    from podium.experiments.rl import reproduce

    done = reproduce(
        options.out,
        environments=options.environments,
        seeds=options.seeds,
        sb3_defaults=options.sb3_defaults,
        constant=options.constant,
        quick=options.quick,
        seed=options.seed,
        workers=options.workers,
        scheduler=options.scheduler,
    )
    from podium.experiments.rl.outputs import agreement_table

    return show_written(done.folder, agreement_table(done.tables))


def experiment_options(options: argparse.Namespace) -> dict[str, Any]:
    """The options that all experiments share."""
    return {name: getattr(options, name) for name in ("replay", "quick", "seed", "workers", "scheduler")}


def show_written(folder: Path, table: Table | None) -> int:
    """How printed and reproduced numbers agree, and where everything is."""
    if table is not None:
        print(table.text(terminal_width()))
    print(f"\nWritten: {folder / 'index.html'} (open it in a browser), tables/, sweeps/, figures/, results.json")
    return 0


def run_completion(options: argparse.Namespace) -> int:
    from podium.completion import completion_script

    print(completion_script(build_parser(), options.shell))
    return 0


# --- options to arguments --------------------------------------------------------------------------------------


def open_log(options: argparse.Namespace) -> Log | ScannedLog:
    given = {"memory_limit": options.memory_limit, "temp_dir": options.temp_dir, "threads": options.threads}
    chosen = choose_engine(options.log, options.engine)
    engine = {name: value for name, value in given.items() if value is not None and chosen == "duckdb"}
    if chosen == "duckdb":
        engine["progress"] = show_progress
    return scan_log(
        options.log,
        engine=chosen,
        state=options.state or None,
        action=options.action,
        reward=options.reward,
        propensity=options.propensity,
        time=options.time,
        unit=options.unit,
        actions=split(options.actions) if options.actions is not None else (),
        text=options.text or (),
        **engine,
    )


def policies_of(options: argparse.Namespace) -> dict[str, str] | None:
    """--policy NAME=SPEC as a mapping; None leaves the log's own pi_ columns."""
    return named_specs(options.policy, "--policy") if options.policy else None


def named_specs(entries: Sequence[str], option: str) -> dict[str, str]:
    policies: dict[str, str] = {}
    for entry in entries:
        name, equals, spec = entry.partition("=")
        if not (name and equals and spec):
            raise PodiumError(f"{option} {entry!r} is not NAME=SPEC", hint=f"a SPEC is one of {FORMS}.")
        if name in policies:
            raise PodiumError(f"the policy {name!r} is given twice", hint="give each policy a name of its own.")
        policies[name] = spec
    return policies


def baseline_of(text: str) -> Any:
    """A baseline named on the command line: mean, linear, state, a number, or package.module:object."""
    try:
        return float(text)
    except ValueError:
        pass
    module, colon, name = text.partition(":")
    if colon:
        from podium.policies.specs import load_object

        return load_object(module, name, "baseline")
    return text


def judge_options(options: argparse.Namespace) -> dict[str, Any]:
    """The options that compare, check and plan share."""
    return {
        "estimator": options.estimator,
        "baseline": baseline_of(options.baseline),
        "level": options.level,
        "verdicts": options.verdicts,
        "lower_is_better": options.lower_is_better,
        "behavior": behavior_of(options),
        "joint": options.joint,
        **method_options(options),
    }


def method_options(options: argparse.Namespace) -> dict[str, Any]:
    return {"normalize": options.normalize, "duplicates": options.duplicates, "seed": options.seed}


def behavior_of(options: argparse.Namespace) -> Any:
    """--behavior SPEC, or --logged-by NAME=SPEC for each of several loggers with --logger COL."""
    if not options.logged_by:
        if options.logger is not None:
            raise PodiumError("--logger needs --logged-by NAME=SPEC", hint="name the policy of every logger.")
        return options.behavior
    if options.behavior is not None:
        raise PodiumError("--behavior and --logged-by exclude each other", hint="give the one or the other.")
    return Loggers(named_specs(options.logged_by, "--logged-by"), by=options.logger or "logger")


def split(text: str, option: str = "--actions") -> list[str]:
    """Comma-separated labels; quote one that holds a comma."""
    labels = [label.strip() for label in next(csv.reader([text], skipinitialspace=True), [])]
    if not all(labels) or not labels:
        what = "names an empty action" if option == "--actions" else "has an empty name"
        raise PodiumError(f"{option} {text!r} {what}", hint=f"write {option} a,b,c.")
    return labels


# --- output ----------------------------------------------------------------------------------------------------


def show(result: Any, options: argparse.Namespace, more: Mapping[str, Any] | None = None) -> None:
    """A result as JSON, or as tables that fit the terminal; plain when piped."""
    if options.json:
        plain = not (sys.stdout.encoding or "").lower().startswith("utf")
        print(
            json.dumps(
                result.to_dict() | dict(more or {}), indent=1, allow_nan=False, ensure_ascii=plain, default=plain_json
            )
        )
        return
    bold = sys.stdout.isatty() and not os.environ.get("NO_COLOR")
    print(result.text(terminal_width(), bold))


def plain_json(value: Any) -> Any:
    if hasattr(value, "item"):
        return value.item()
    return str(value)


def terminal_width() -> int:
    """Columns of the terminal, between 60 and 120; 80 when piped."""
    return max(60, min(shutil.get_terminal_size((80, 24)).columns, 120)) if sys.stdout.isatty() else 80


class Parser(argparse.ArgumentParser):
    """A parser whose errors look like all others."""

    def error(self, message: str) -> NoReturn:
        raise PodiumError(message, hint=f"see {self.prog} --help.")


def build_parser() -> argparse.ArgumentParser:
    parser = Parser(prog="podium", description="Which policy is better, from the few interactions you have.")
    parser.add_argument("--version", action="version", version=f"podium {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="write and compare the bundled example")
    demo.add_argument("--out", default="podium-demo", metavar="DIR", help="folder for its files (default: %(default)s)")
    demo.set_defaults(run=run_demo)

    compare_ = commands.add_parser("compare", help="rank the policies and judge every pair")
    add_log(compare_)
    add_method(compare_)
    add_judge(compare_)
    compare_.add_argument("--gate", metavar="CONDITION", help='exit 0, 3 or 4: "new > current", "new > current - 0.02"')
    compare_.add_argument("--bootstrap", type=int, default=0, metavar="B", help="add paired bootstrap intervals")
    compare_.add_argument("--html", metavar="FILE", help="also write a report")
    compare_.add_argument(
        "--difference", type=float, metavar="D", help="the smallest difference in reward that matters, for the report"
    )
    compare_.add_argument("--episodes", action="store_true", help="LOG has one row per step of recorded episodes")
    compare_.add_argument("--horizon", type=int, metavar="T", help="with --episodes: steps of an episode that count")
    compare_.add_argument(
        "--bounds", type=float, nargs=2, metavar=("LOW", "HIGH"), help="with --episodes: of the actions"
    )
    compare_.set_defaults(run=run_compare)

    plan_ = commands.add_parser("plan", help="rows needed, and what to log more of")
    add_log(plan_)
    add_method(plan_)
    add_judge(plan_)
    plan_.add_argument(
        "--difference", type=float, required=True, metavar="D", help="the smallest difference in reward that matters"
    )
    plan_.set_defaults(run=run_plan)

    evaluate_ = commands.add_parser("evaluate", help="the table of estimates alone")
    add_log(evaluate_)
    add_method(evaluate_)
    evaluate_.add_argument(
        "--estimator",
        action="append",
        metavar="NAME",
        help="repeat for several; all: the whole family; default: the four of the paper",
    )
    evaluate_.set_defaults(run=run_evaluate)

    spectrum_ = commands.add_parser("spectrum", help="every method on one map, baseline by weighting")
    add_log(spectrum_)
    spectrum_.add_argument(
        "--baseline", action="append", help="repeat for several (default: mean and linear); as in compare"
    )
    spectrum_.add_argument("--estimator", action="append", metavar="NAME", help="repeat for several; default: all")
    spectrum_.add_argument(
        "--level", type=float, default=0.95, help="of the intervals of values (default: %(default)s)"
    )
    spectrum_.add_argument("--lower-is-better", action="store_true", help="the reward is a cost")
    spectrum_.add_argument("--seed", type=int, default=0)
    spectrum_.set_defaults(run=run_spectrum)

    states = commands.add_parser("states", help="compare state by state")
    add_log(states)
    add_method(states)
    states.add_argument("--estimator", default="LDE", help="LDE, DRE, IPS, DiM, cIPS:10, ... (default: %(default)s)")
    states.add_argument("--lower-is-better", action="store_true", help="the reward is a cost")
    states.set_defaults(run=run_states)

    check = commands.add_parser("check", help="what the log can and cannot say about the policies")
    add_log(check)
    add_method(check)
    add_judge(check)
    check.set_defaults(run=run_check)

    studio = commands.add_parser("studio", help="the web page, on this machine alone")
    studio.add_argument("--port", type=int, metavar="P", help="0 takes a free one (default: 8765, or a free one)")
    studio.add_argument("--host", default="127.0.0.1", metavar="H", help="where to listen (default: %(default)s)")
    studio.add_argument("--no-browser", action="store_true", help="print the address, and open no browser")
    studio.add_argument("--max-upload", type=int, default=512, metavar="MB", help="largest file (default: %(default)s)")
    studio.add_argument("--max-rows", type=int, default=5_000_000, metavar="N", help="most rows (default: %(default)s)")
    studio.set_defaults(run=run_studio)

    reproduce = commands.add_parser("reproduce", help="run the paper's experiments")
    experiments = reproduce.add_subparsers(title="experiments", required=True, metavar="EXPERIMENT")
    synthetic = experiments.add_parser("synthetic", help="Example 1: a bandit whose truth is known")
    add_experiment(synthetic, "podium-synthetic")
    synthetic.add_argument("--replay", action="store_true", help="the paper's random numbers: its own figures again")
    synthetic.add_argument(
        "--reward", action="append", metavar="NAME", help="1.1, 1.2, 1.2-text or package.module:function; repeatable"
    )
    synthetic.add_argument("--verdict-tests", type=int, metavar="N", help="tests per cell for podium's own verdicts")
    synthetic.set_defaults(run=run_reproduce_synthetic)

    classification = experiments.add_parser("classification", help="Example 2: classifiers as policies")
    add_experiment(classification, "podium-classification")
    classification.add_argument("--replay", action="store_true", help="the paper's random numbers: its tables again")
    classification.add_argument(
        "--datasets", metavar="A,B", help="abalone, algerian, ecoli, glass, winequality (default: these five); "
        "without download: iris, wine, breast_cancer, digits",
    )  # fmt: skip
    classification.add_argument(
        "--policies",
        metavar="A,B",
        help="dlm (default), dlm-trained, sklearn (ten classifiers), package.module:function",
    )
    classification.add_argument(
        "--reading", choices=["program", "text"], help="of the protocol (default: both; dlm alone has the program's)"
    )
    classification.add_argument(
        "--data-dir",
        metavar="DIR",
        help="folder with the datasets (default: PODIUM_DATA_DIR, else they are downloaded)",
    )
    classification.add_argument(
        "--verdict-logs", type=int, metavar="N", help="logs per round for podium's own verdicts"
    )
    classification.set_defaults(run=run_reproduce_classification)

    rl = experiments.add_parser("rl", help="Example 3: trained policies in eight PyBullet environments")
    add_experiment(rl, "podium-rl")
    rl.add_argument("--environments", nargs="+", metavar="NAME", help="such as Ant Reacher (default: all eight)")
    rl.add_argument("--seeds", type=int, metavar="N", help="sets of policies per environment (default: 15)")
    rl.add_argument("--sb3-defaults", choices=["paper", "current"], default="paper", help="whose hyperparameters")
    rl.add_argument("--constant", type=float, default=0.0, metavar="C", help="divide by p + C, as the authors' 1e-6")
    rl.set_defaults(run=run_reproduce_rl)

    completion = commands.add_parser("completion", help="print a script that completes podium in your shell")
    completion.add_argument("shell", choices=SHELLS, help='bash: eval "$(podium completion bash)"')
    completion.set_defaults(run=run_completion)
    return parser


def add_experiment(parser: argparse.ArgumentParser, out: str) -> None:
    parser.add_argument(
        "--out", default=out, metavar="DIR", help="folder to write to, and to resume from (%(default)s)"
    )
    parser.add_argument("--workers", type=int, metavar="N", help="processes (default: every core)")
    parser.add_argument("--scheduler", metavar="ADDRESS", help="run on the workers of this Dask scheduler")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--quick", action="store_true", help="a small version of the same")


def add_log(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("log", metavar="LOG", help="CSV, Parquet or JSON lines; a pattern or a folder of such files")
    parser.add_argument("--policy", action="append", metavar="NAME=SPEC", help=f"SPEC: {FORMS}")
    parser.add_argument("--behavior", metavar="SPEC", help="the policy that chose the logged actions")
    parser.add_argument(
        "--logged-by", action="append", metavar="NAME=SPEC", help="one of several policies that made the log"
    )
    parser.add_argument("--logger", metavar="COL", help="which of them chose a row's action (default: logger)")
    parser.add_argument(
        "--state", action="append", metavar="COL", help="repeat for several; default: what is left over"
    )
    parser.add_argument("--action", default="action", metavar="COL")
    parser.add_argument("--reward", default="reward", metavar="COL")
    parser.add_argument("--propensity", metavar="COL")
    parser.add_argument("--time", metavar="COL", help="default: a column 'time', else the row order")
    parser.add_argument("--unit", metavar="COL", help="rows of one unit depend on each other")
    parser.add_argument("--text", action="append", metavar="COL", help="read a column of numbers as names")
    parser.add_argument("--actions", metavar="A,B,C", help="the action space, where the log lacks some of it")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument(
        "--engine", default="auto", choices=NAMES, help="what reads the rows (auto: duckdb from 256 MB on)"
    )
    parser.add_argument("--memory-limit", metavar="SIZE", help="what duckdb may hold before it uses the disk (512MB)")
    parser.add_argument("--temp-dir", metavar="DIR", help="where duckdb puts what it cannot hold")
    parser.add_argument("--threads", type=int, metavar="N", help="of duckdb; the numbers do not depend on it")


def add_judge(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--estimator",
        help="posterior, LDE, DRE, IPS, DiM, SNIPS, cIPS:10, ... (default: posterior where it can be used)",
    )
    parser.add_argument("--level", type=float, default=0.95, help="of intervals and claims (default: %(default)s)")
    parser.add_argument("--verdicts", metavar="NAME", help="posterior, gated, paired t, bootstrap t or sign flip")
    parser.add_argument("--joint", action="store_true", help="claims hold all together, not each in its share")
    parser.add_argument("--lower-is-better", action="store_true", help="the reward is a cost")


def add_method(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--baseline", default="mean", help="mean, linear, state, a number, or package.module:object")
    parser.add_argument("--normalize", default="rows", choices=["rows", "states"])
    parser.add_argument(
        "--duplicates", choices=["latest", "all"], help="default: latest for LDE and DiM, all for IPS and DRE"
    )
    parser.add_argument("--seed", type=int, default=0)


if __name__ == "__main__":
    raise SystemExit(main())
