"""The arguments of the command `podium`: its parser, and what every option means."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable
from typing import Any, NoReturn, TypeAlias

from podium.command.completion import SHELLS
from podium.continuous.kernels import KERNELS
from podium.data.errors import PodiumError, meant
from podium.engines import NAMES
from podium.engines.sample import SAMPLE_ROWS
from podium.policies.specs import FORMS
from podium.version import VERSION

Add: TypeAlias = Callable[..., argparse.Action]  # adds one option to a parser
Group: TypeAlias = Callable[[Add], None]  # adds options that belong together
QUESTION_FILE = "podium.toml"


class Parser(argparse.ArgumentParser):
    """A parser whose errors look like all others."""

    def error(self, message: str) -> NoReturn:
        raise PodiumError(message, hint=f"{self.meant(message)}see {self.prog} --help.")

    def meant(self, message: str) -> str:
        """The option, command or value that was probably meant by what a message says is unknown."""
        wrong = re.search(r"unrecognized arguments: (-[^\s=]*)|invalid choice: '([^']*)' \(choose from (.*)\)", message)
        if wrong is None:
            return ""
        if wrong[2] is not None:
            return meant(wrong[2], [name.strip(" '") for name in wrong[3].split(",")])
        return meant(wrong[1], self.options())

    def options(self) -> list[str]:
        """Every option of this parser and of its commands."""
        known = [name for action in self._actions for name in action.option_strings]
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                known += [name for command in action.choices.values() for name in command.options()]
        return known


def build_parser() -> argparse.ArgumentParser:
    parser = Parser(prog="podium", description="Which policy is better, from the few interactions you have.")
    parser.add_argument("--version", action="version", version=f"podium {VERSION}")
    commands = parser.add_subparsers(title="commands", required=True, metavar="COMMAND")
    for name, (meaning, *groups) in COMMANDS.items():
        command = commands.add_parser(name, help=meaning)
        for group in groups:
            group(command.add_argument)
        if name == "reproduce":
            add_experiments(command)
        command.set_defaults(run=name)
    return parser


def command_parser(name: str) -> argparse.ArgumentParser:
    """The parser of one command."""
    parser = Parser(prog=f"podium {name}")
    for group in COMMANDS[name][1:]:
        group(parser.add_argument)
    return parser


# --- options that several commands share -------------------------------------------------------------------------


def log_options(add: Add) -> None:
    add("log", metavar="LOG", help="CSV, Excel, ODS, Parquet or JSON lines; a pattern or a folder of files")
    add("--policy", action="append", metavar="NAME=SPEC", help=f"SPEC: {FORMS}")
    add("--trust", action="append", metavar="FILE", help="let this sb3: model run the code in its file")
    add(
        "--behavior",
        metavar="SPEC",
        help="the policy that chose the logged actions: a SPEC such as shares:A=.4,B=.6, or estimate",
    )
    add("--logged-by", action="append", metavar="NAME=SPEC", help="one of several policies that made the log")
    add("--logger", metavar="COL", help="which of them chose a row's action (default: logger)")
    add(
        "--state",
        action="append",
        metavar="COL",
        help="state column; repeat for several (default: columns without another role, but no ids, dates, long texts)",
    )
    add("--action", default="action", metavar="COL")
    add("--reward", default="reward", metavar="COL")
    add("--propensity", metavar="COL")
    add("--time", metavar="COL", help="default: a column 'time', else the row order")
    add("--unit", metavar="COL", help="rows of one unit depend on each other")
    add("--text", action="append", metavar="COL", help="read a column of numbers as names")
    add("--success", metavar="VALUE", help="value of the reward column that counts as 1; every other one counts as 0")
    add("--drop-missing", action="store_true", help="leave out rows without an action, a reward or a propensity")
    add("--date-format", metavar="F", help="how dates in the time column are written, such as %%d/%%m/%%Y")
    signs = "decimal sign of numbers such as 1.234 in a file with semicolons (default: found in the file)"
    add("--decimal", choices=[",", "."], help=signs)
    add("--sheet", metavar="NAME", help="sheet of an Excel or ODS file (default: the first one with a table)")
    add("--actions", metavar="A,B,C", help="the action space, where the log lacks some of it")
    add("--eligible", metavar="COL", help="column that lists the actions possible in a row: a|b|c, or a JSON list")
    rules = "what to do with policies that play other actions: refuse (default) or renormalize"
    add("--ineligible", default="refuse", choices=["refuse", "renormalize"], help=rules)
    add("--action-features", metavar="FILE", help="one row per action: its name, then price, category, embedding, ...")
    costs = "known cost of an action, or of a column: call=2.5, column:price; repeat for several (default: none)"
    add("--cost", action="append", metavar="ACTION=C", help=costs)
    add("--json", action="store_true", help="print JSON")
    add("--engine", default="auto", choices=NAMES, help="what reads the rows (auto: by rows, actions and policies)")
    add("--memory-limit", metavar="SIZE", help="what duckdb may hold before it uses the disk (320MB)")
    add("--temp-dir", metavar="DIR", help="where duckdb puts what it cannot hold")
    add("--threads", type=int, metavar="N", help="of duckdb; the numbers do not depend on it")
    add(
        "--sample-rows",
        type=int,
        default=SAMPLE_ROWS,
        metavar="N",
        help="of a larger log, looked at closely (%(default)s)",
    )


def method_options(add: Add) -> None:
    add("--baseline", default="mean", help="mean, linear, state, a number, or package.module:object")
    add("--normalize", default="rows", choices=["rows", "states"])
    add("--duplicates", choices=["latest", "all"], help="default: latest for LDE and DiM, all for IPS and DRE")
    add("--seed", type=int, default=0)


def judge_options(add: Add) -> None:
    methods = "posterior, LDE, DRE, IPS, DiM, SNIPS, cIPS:10, ... (default: posterior where it can be used)"
    add("--estimator", help=methods)
    add("--level", type=float, default=0.95, help="of intervals and claims (default: %(default)s)")
    add("--verdicts", metavar="NAME", help="posterior, gated, doubly robust, paired t, bootstrap t or sign flip")
    add("--joint", action="store_true", help="claims hold all together, not each in its share")
    planned = "this look of those planned at a growing log: 3/16, or rows:3200 until 3,200 rows are logged"
    add("--look", metavar="K/N", help=planned)
    cost_option(add)


def cost_option(add: Add) -> None:
    add("--lower-is-better", action="store_true", help="the reward is a cost")


def overwrite_option(add: Add) -> None:
    add("--overwrite", action="store_true", help="also replace existing files that podium did not write")


def episode_options(add: Add) -> None:
    add("--episodes", action="store_true", help="LOG has one row per step of recorded episodes")
    add("--horizon", type=int, metavar="T", help="with --episodes: steps of an episode that count")
    add("--gamma", type=float, metavar="G", help="with --episodes: the discount of later rewards (1)")
    add("--bounds", type=float, nargs=2, metavar=("LOW", "HIGH"), help="with --episodes: of the actions")


def continuous_options(add: Add) -> None:
    numbers = "actions are numbers, such as doses or prices; the propensity is the density of the logged action"
    add("--continuous", action="store_true", help=numbers)
    add("--kernel", choices=list(KERNELS), help="with --continuous: shape of the kernel (default: epanechnikov)")
    add(
        "--bandwidth",
        type=float,
        metavar="H",
        help="with --continuous: width of the kernel (default: Silverman's rule)",
    )


def refused_option(add: Add) -> None:
    add("--continuous", action="store_true", help=argparse.SUPPRESS)  # refused by name


# --- options of one command --------------------------------------------------------------------------------------


def demo_options(add: Add) -> None:
    add("--out", default="podium-demo", metavar="DIR", help="folder for its files (default: %(default)s)")
    overwrite_option(add)


def init_options(add: Add) -> None:
    add("log", metavar="LOG", help="the log that the question is about, as in podium compare")
    add("file", nargs="?", default=QUESTION_FILE, metavar="FILE", help="the file to write (default: %(default)s)")
    add("--overwrite", action="store_true", help="replace an existing file")


def run_options(add: Add) -> None:
    """The file, and every option of compare: what the command line does not give is left to the file."""
    add("file", nargs="?", default=QUESTION_FILE, metavar="FILE", help="the question file (default: %(default)s)")

    def override(*names: str, **how: Any) -> Any:
        default = str(how.get("default")).replace("%", "%%")
        how["help"] = str(how.get("help", "")).replace("%(default)s", default)
        return add(*names, **how | {"default": argparse.SUPPRESS}) if names[0].startswith("-") else None

    for group in COMMANDS["compare"][1:]:
        group(override)


def compare_options(add: Add) -> None:
    groups = (
        "also compare in groups of rows: COL for its values or four ranges, COL:40,65 with cuts; repeat for several"
    )
    add("--by", action="append", metavar="COL", help=groups)
    add("--gate", metavar="CONDITION", help='exit 0, 3 or 4: "new > current", "new > current - 0.02"')
    add("--bootstrap", type=int, default=0, metavar="B", help="add paired bootstrap intervals")
    add("--html", metavar="FILE", help="also write a report")
    overwrite_option(add)
    matters = "the smallest difference in reward that matters, for the report"
    add("--difference", type=float, metavar="D", help=matters)


def plan_options(add: Add) -> None:
    matters = "the smallest difference in reward that matters"
    add("--difference", type=float, required=True, metavar="D", help=matters)


def evaluate_options(add: Add) -> None:
    methods = "repeat for several; all: the whole family; default: the four of the paper, or of episodes"
    add("--estimator", action="append", metavar="NAME", help=methods)
    cost_option(add)


def spectrum_options(add: Add) -> None:
    add("--baseline", action="append", help="repeat for several (default: mean and linear); as in compare")
    add("--estimator", action="append", metavar="NAME", help="repeat for several; default: all")
    add("--level", type=float, default=0.95, help="of the intervals of values (default: %(default)s)")
    cost_option(add)
    add("--seed", type=int, default=0)


def states_options(add: Add) -> None:
    methods = "LDE, DRE, IPS, DiM, cIPS:10, ... (default: DRE where propensities are known, else LDE)"
    add("--estimator", help=methods)
    cost_option(add)


def studio_options(add: Add) -> None:
    add("--port", type=int, metavar="P", help="0 takes a free one (default: 8765, or a free one)")
    add("--host", default="127.0.0.1", metavar="H", help="where to listen (default: %(default)s)")
    add("--no-browser", action="store_true", help="print the address, and open no browser")
    add("--max-upload", type=int, default=512, metavar="MB", help="largest file (default: %(default)s)")
    add("--max-rows", type=int, default=5_000_000, metavar="N", help="most rows (default: %(default)s)")


def completion_options(add: Add) -> None:
    add("shell", choices=SHELLS, help='bash: eval "$(podium completion bash)"')


# --- the paper's experiments -------------------------------------------------------------------------------------


def add_experiments(parser: argparse.ArgumentParser) -> None:
    kinds = parser.add_subparsers(title="experiments", required=True, metavar="EXPERIMENT")
    for name, (meaning, group) in EXPERIMENTS.items():
        experiment = kinds.add_parser(name, help=meaning)
        add = experiment.add_argument
        add(
            "--out",
            default=f"podium-{name}",
            metavar="DIR",
            help="folder to write to, and to resume from (%(default)s)",
        )
        add("--workers", type=int, metavar="N", help="processes (default: every core)")
        add("--scheduler", metavar="ADDRESS", help="run on the workers of this Dask scheduler")
        add("--seed", type=int, default=0)
        add("--quick", action="store_true", help="a small version of the same")
        overwrite_option(add)
        group(add)
        experiment.set_defaults(experiment=name)


def synthetic_options(add: Add) -> None:
    add("--replay", action="store_true", help="the paper's random numbers: its own figures again")
    rewards = "1.1, 1.2, 1.2-text or package.module:function; repeatable"
    add("--reward", action="append", metavar="NAME", help=rewards)
    add("--verdict-tests", type=int, metavar="N", help="tests per cell for podium's own verdicts")


def classification_options(add: Add) -> None:
    add("--replay", action="store_true", help="the paper's random numbers: its tables again")
    datasets = "abalone, algerian, ecoli, glass, winequality (default: these five); iris, wine, breast_cancer, digits"
    add("--datasets", metavar="A,B", help=datasets)
    policies = "dlm (default), dlm-trained, sklearn (ten classifiers), package.module:function"
    add("--policies", metavar="A,B", help=policies)
    readings = "of the protocol (default: both; dlm alone has the program's)"
    add("--reading", choices=["program", "text"], help=readings)
    folder = "folder with the datasets (default: PODIUM_DATA_DIR, else the tables that podium ships)"
    add("--data-dir", metavar="DIR", help=folder)
    add("--download", action="store_true", help="original datasets from the UCI repository, kept in the user's cache")
    add("--verdict-logs", type=int, metavar="N", help="logs per round for podium's own verdicts")


def rl_options(add: Add) -> None:
    add("--environments", nargs="+", metavar="NAME", help="such as Ant Reacher (default: all eight)")
    add("--seeds", type=int, metavar="N", help="sets of policies per environment (default: 15)")
    add("--sb3-defaults", choices=["paper", "current"], default="paper", help="whose hyperparameters")
    add("--constant", type=float, default=0.0, metavar="C", help="divide by p + C, as the authors' 1e-6")


EXPERIMENTS: dict[str, tuple[str, Group]] = {
    "synthetic": ("Example 1: a bandit whose truth is known", synthetic_options),
    "classification": ("Example 2: classifiers as policies", classification_options),
    "rl": ("Example 3: trained policies in eight PyBullet environments", rl_options),
}
JUDGED = (log_options, method_options, judge_options)
COMMANDS: dict[str, tuple[str, *tuple[Group, ...]]] = {
    "demo": ("write and compare the bundled example", demo_options),
    "init": ("write a question file from a log, to edit and run", init_options),
    "run": ("answer a question file, as compare with its options", run_options),
    "compare": (
        "rank the policies and judge every pair",
        *JUDGED,
        compare_options,
        episode_options,
        continuous_options,
    ),
    "plan": ("rows needed, and what to log more of", *JUDGED, plan_options, refused_option),
    "evaluate": (
        "the table of estimates alone",
        log_options,
        method_options,
        evaluate_options,
        episode_options,
        continuous_options,
    ),
    "spectrum": ("every method on one map, baseline by weighting", log_options, spectrum_options, refused_option),
    "states": ("compare state by state", log_options, method_options, states_options, refused_option),
    "check": ("what the log can and cannot say about the policies", *JUDGED, refused_option),
    "studio": ("the web page, on this machine alone", studio_options),
    "reproduce": ("run the paper's experiments",),
    "completion": ("print a script that completes podium in your shell", completion_options),
}
