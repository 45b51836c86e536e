"""The command `podium`: demo, compare, evaluate, states, check, reproduce.

Exit codes: 0 done; 2 bad input or usage (message on stderr, nothing written); 130 interrupted.
"""

from __future__ import annotations

import argparse
import csv
import json
import os
import shutil
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from podium import __version__
from podium.compare import compare
from podium.diagnostics import diagnose
from podium.errors import PodiumError
from podium.estimate import evaluate
from podium.estimators import ESTIMATORS
from podium.io import read_log
from podium.log import Log
from podium.specs import FORMS
from podium.states import compare_states


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; every error that a user can cause becomes a message, never a traceback."""
    try:
        options = build_parser().parse_args(arguments)
        result: int = options.run(options)
        sys.stdout.flush()
        return result
    except PodiumError as error:
        print(f"podium: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("podium: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:  # the reader (head, less) has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except MemoryError:
        print("podium: the log does not fit into memory\n\nHint: use fewer rows or columns.", file=sys.stderr)
        return 2


# --- commands --------------------------------------------------------------------------------------------------


def run_compare(options: argparse.Namespace) -> int:
    log = open_log(options)
    result = compare(
        log,
        policies_of(options),
        options.estimator,
        baseline_of(options.baseline),
        options.level,
        unit=None if options.unit is None else options.unit,
        lower_is_better=options.lower_is_better,
        behavior=options.behavior,
        joint=options.joint,
        bootstrap=options.bootstrap,
        **method_options(options),
    )
    if options.html:
        result.report(options.html)
    show(result, options)
    if options.html and not options.json:
        print(f"\nReport: {options.html}")
    return 0


def run_evaluate(options: argparse.Namespace) -> int:
    result = evaluate(
        open_log(options),
        policies_of(options),
        options.estimator or list(ESTIMATORS),
        baseline_of(options.baseline),
        behavior=options.behavior,
        **method_options(options),
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
        behavior=options.behavior,
        **method_options(options),
    )
    show(result, options)
    return 0


def run_check(options: argparse.Namespace) -> int:
    show(diagnose(open_log(options), policies_of(options), behavior=options.behavior), options)
    return 0


def run_demo(options: argparse.Namespace) -> int:
    from podium.demo import run_demo as run

    run(Path(options.out), terminal_width())
    return 0


def run_reproduce_synthetic(options: argparse.Namespace) -> int:
    from podium.experiments.synthetic import reproduce
    from podium.experiments.synthetic.outputs import agreement_table

    done = reproduce(
        options.out,
        replay=options.replay,
        quick=options.quick,
        seed=options.seed,
        workers=options.workers,
        scheduler=options.scheduler,
        rewards=options.reward or ("1.1", "1.2"),
        verdict_tests=options.verdict_tests,
    )
    if done.tables:
        print(agreement_table(done.tables).text(terminal_width()))
    print(f"\nWritten: {done.folder / 'index.html'} (open it in a browser), tables/, sweeps/, figures/, results.json")
    return 0


# --- options to arguments --------------------------------------------------------------------------------------


def open_log(options: argparse.Namespace) -> Log:
    return read_log(
        options.log,
        state=options.state or None,
        action=options.action,
        reward=options.reward,
        propensity=options.propensity,
        time=options.time,
        unit=options.unit,
        actions=split(options.actions) if options.actions else (),
        text=options.text or (),
    )


def policies_of(options: argparse.Namespace) -> dict[str, str] | None:
    """--policy NAME=SPEC as a mapping; None leaves the log's own pi_ columns."""
    if not options.policy:
        return None
    policies: dict[str, str] = {}
    for entry in options.policy:
        name, equals, spec = entry.partition("=")
        if not (name and equals and spec):
            raise PodiumError(f"--policy {entry!r} is not NAME=SPEC", hint=f"a SPEC is one of {FORMS}.")
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
        from podium.specs import load_object

        return load_object(module, name)
    return text


def method_options(options: argparse.Namespace) -> dict[str, Any]:
    return {"normalize": options.normalize, "duplicates": options.duplicates, "seed": options.seed}


def split(text: str) -> list[str]:
    """Comma-separated labels; quote one that holds a comma."""
    return [label.strip() for label in next(csv.reader([text], skipinitialspace=True))]


# --- output ----------------------------------------------------------------------------------------------------


def show(result: Any, options: argparse.Namespace) -> None:
    """A result as JSON, or as tables that fit the terminal; plain when piped."""
    if options.json:
        print(json.dumps(result.to_dict(), indent=1, allow_nan=False, ensure_ascii=False, default=plain_json))
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


def build_parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="podium", description="Which policy is better, from the few interactions you have."
    )
    parser.add_argument("--version", action="version", version=f"podium {__version__}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="write and compare the bundled example")
    demo.add_argument("--out", default="podium-demo", metavar="DIR", help="folder for its files (default: %(default)s)")
    demo.set_defaults(run=run_demo)

    compare_ = commands.add_parser("compare", help="rank the policies and judge every pair")
    add_log(compare_)
    add_method(compare_)
    compare_.add_argument("--estimator", default="LDE", help="LDE, DRE, IPS or DiM (default: %(default)s)")
    compare_.add_argument("--level", type=float, default=0.95, help="of intervals and claims (default: %(default)s)")
    compare_.add_argument("--joint", action="store_true", help="claims hold all together, not each in its share")
    compare_.add_argument("--bootstrap", type=int, default=0, metavar="B", help="add paired bootstrap intervals")
    compare_.add_argument("--html", metavar="FILE", help="also write a report")
    compare_.add_argument("--lower-is-better", action="store_true", help="the reward is a cost")
    compare_.set_defaults(run=run_compare)

    evaluate_ = commands.add_parser("evaluate", help="the table of estimates alone")
    add_log(evaluate_)
    add_method(evaluate_)
    evaluate_.add_argument("--estimator", action="append", metavar="NAME", help="repeat for several; default: all four")
    evaluate_.set_defaults(run=run_evaluate)

    states = commands.add_parser("states", help="compare state by state")
    add_log(states)
    add_method(states)
    states.add_argument("--estimator", default="LDE", help="LDE, DRE, IPS or DiM (default: %(default)s)")
    states.add_argument("--lower-is-better", action="store_true", help="the reward is a cost")
    states.set_defaults(run=run_states)

    check = commands.add_parser("check", help="what the log can and cannot say about the policies")
    add_log(check)
    check.set_defaults(run=run_check)

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
    parser.add_argument("log", metavar="LOG", help="CSV, Parquet or JSON lines")
    parser.add_argument("--policy", action="append", metavar="NAME=SPEC", help=f"SPEC: {FORMS}")
    parser.add_argument("--behavior", metavar="SPEC", help="the policy that chose the logged actions")
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


def add_method(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--baseline", default="mean", help="mean, linear, state, a number, or package.module:object")
    parser.add_argument("--normalize", default="rows", choices=["rows", "states"])
    parser.add_argument(
        "--duplicates", choices=["latest", "all"], help="default: latest for LDE and DiM, all for IPS and DRE"
    )
    parser.add_argument("--seed", type=int, default=0)


if __name__ == "__main__":
    raise SystemExit(main())
