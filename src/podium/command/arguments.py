"""The arguments of the command `podium`: its parser, and what every option means."""

from __future__ import annotations

import argparse
from typing import NoReturn

from podium.command.completion import SHELLS
from podium.data.errors import PodiumError
from podium.engines import NAMES
from podium.policies.specs import FORMS
from podium.version import VERSION


class Parser(argparse.ArgumentParser):
    """A parser whose errors look like all others."""

    def error(self, message: str) -> NoReturn:
        raise PodiumError(message, hint=f"see {self.prog} --help.")


def build_parser() -> argparse.ArgumentParser:
    parser = Parser(prog="podium", description="Which policy is better, from the few interactions you have.")
    parser.add_argument("--version", action="version", version=f"podium {VERSION}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")

    demo = commands.add_parser("demo", help="write and compare the bundled example")
    demo.add_argument("--out", default="podium-demo", metavar="DIR", help="folder for its files (default: %(default)s)")
    demo.set_defaults(run="demo")

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
    add_episodes(compare_)
    compare_.set_defaults(run="compare")

    plan_ = commands.add_parser("plan", help="rows needed, and what to log more of")
    add_log(plan_)
    add_method(plan_)
    add_judge(plan_)
    plan_.add_argument(
        "--difference", type=float, required=True, metavar="D", help="the smallest difference in reward that matters"
    )
    plan_.set_defaults(run="plan")

    evaluate_ = commands.add_parser("evaluate", help="the table of estimates alone")
    add_log(evaluate_)
    add_method(evaluate_)
    evaluate_.add_argument(
        "--estimator",
        action="append",
        metavar="NAME",
        help="repeat for several; all: the whole family; default: the four of the paper, or of episodes",
    )
    add_episodes(evaluate_)
    evaluate_.set_defaults(run="evaluate")

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
    spectrum_.set_defaults(run="spectrum")

    states = commands.add_parser("states", help="compare state by state")
    add_log(states)
    add_method(states)
    states.add_argument("--estimator", default="LDE", help="LDE, DRE, IPS, DiM, cIPS:10, ... (default: %(default)s)")
    states.add_argument("--lower-is-better", action="store_true", help="the reward is a cost")
    states.set_defaults(run="states")

    check = commands.add_parser("check", help="what the log can and cannot say about the policies")
    add_log(check)
    add_method(check)
    add_judge(check)
    check.set_defaults(run="check")

    studio = commands.add_parser("studio", help="the web page, on this machine alone")
    studio.add_argument("--port", type=int, metavar="P", help="0 takes a free one (default: 8765, or a free one)")
    studio.add_argument("--host", default="127.0.0.1", metavar="H", help="where to listen (default: %(default)s)")
    studio.add_argument("--no-browser", action="store_true", help="print the address, and open no browser")
    studio.add_argument("--max-upload", type=int, default=512, metavar="MB", help="largest file (default: %(default)s)")
    studio.add_argument("--max-rows", type=int, default=5_000_000, metavar="N", help="most rows (default: %(default)s)")
    studio.set_defaults(run="studio")

    reproduce = commands.add_parser("reproduce", help="run the paper's experiments")
    experiments = reproduce.add_subparsers(title="experiments", required=True, metavar="EXPERIMENT")
    synthetic = experiments.add_parser("synthetic", help="Example 1: a bandit whose truth is known")
    add_experiment(synthetic, "podium-synthetic")
    synthetic.add_argument("--replay", action="store_true", help="the paper's random numbers: its own figures again")
    synthetic.add_argument(
        "--reward", action="append", metavar="NAME", help="1.1, 1.2, 1.2-text or package.module:function; repeatable"
    )
    synthetic.add_argument("--verdict-tests", type=int, metavar="N", help="tests per cell for podium's own verdicts")
    synthetic.set_defaults(run="reproduce_synthetic")

    classification = experiments.add_parser("classification", help="Example 2: classifiers as policies")
    add_experiment(classification, "podium-classification")
    classification.add_argument("--replay", action="store_true", help="the paper's random numbers: its tables again")
    classification.add_argument(
        "--datasets", metavar="A,B", help="abalone, algerian, ecoli, glass, winequality (default: these five); "
        "iris, wine, breast_cancer, digits",
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
        help="folder with the datasets (default: PODIUM_DATA_DIR, else the tables that podium ships)",
    )
    classification.add_argument(
        "--download", action="store_true", help="original datasets from the UCI repository, kept in the user's cache"
    )
    classification.add_argument(
        "--verdict-logs", type=int, metavar="N", help="logs per round for podium's own verdicts"
    )
    classification.set_defaults(run="reproduce_classification")

    rl = experiments.add_parser("rl", help="Example 3: trained policies in eight PyBullet environments")
    add_experiment(rl, "podium-rl")
    rl.add_argument("--environments", nargs="+", metavar="NAME", help="such as Ant Reacher (default: all eight)")
    rl.add_argument("--seeds", type=int, metavar="N", help="sets of policies per environment (default: 15)")
    rl.add_argument("--sb3-defaults", choices=["paper", "current"], default="paper", help="whose hyperparameters")
    rl.add_argument("--constant", type=float, default=0.0, metavar="C", help="divide by p + C, as the authors' 1e-6")
    rl.set_defaults(run="reproduce_rl")

    completion = commands.add_parser("completion", help="print a script that completes podium in your shell")
    completion.add_argument("shell", choices=SHELLS, help='bash: eval "$(podium completion bash)"')
    completion.set_defaults(run="completion")
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
    parser.add_argument("--memory-limit", metavar="SIZE", help="what duckdb may hold before it uses the disk (320MB)")
    parser.add_argument("--temp-dir", metavar="DIR", help="where duckdb puts what it cannot hold")
    parser.add_argument("--threads", type=int, metavar="N", help="of duckdb; the numbers do not depend on it")


def add_episodes(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--episodes", action="store_true", help="LOG has one row per step of recorded episodes")
    parser.add_argument("--horizon", type=int, metavar="T", help="with --episodes: steps of an episode that count")
    parser.add_argument("--gamma", type=float, metavar="G", help="with --episodes: the discount of later rewards (1)")
    parser.add_argument(
        "--bounds", type=float, nargs=2, metavar=("LOW", "HIGH"), help="with --episodes: of the actions"
    )


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
