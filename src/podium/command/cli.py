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
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from podium.command.arguments import build_parser
from podium.comparison.compare import compare, plan
from podium.comparison.diagnostics import diagnose
from podium.comparison.result import Comparison
from podium.comparison.spectrum import spectrum
from podium.comparison.states import compare_states
from podium.data.errors import PodiumError
from podium.data.log import Log
from podium.data.progress import show_progress
from podium.data.scan import ScannedLog, choose_engine, scan_log
from podium.estimates.estimators import EPISODIC, ESTIMATORS
from podium.estimates.evaluate import Estimates, evaluate
from podium.outputs.display import Table, printable, wrap
from podium.policies.specs import FORMS
from podium.propensities.loggers import Loggers


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; every error that a user can cause becomes a message, never a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a label that the terminal cannot show is no reason to stop
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        options = build_parser().parse_args(arguments)
        options.command = shlex.join(["podium", *(sys.argv[1:] if arguments is None else arguments)])
        result: int = COMMANDS[options.run](options)
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
        refuse_options(options, STEPS, "needs --episodes")
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

    judged["estimator"] = judged["estimator"] or "LDE"
    steps, policies, given = recorded(options)
    return compare_recorded(steps, policies, **given, **judged)


def evaluate_episodes(options: argparse.Namespace) -> Estimates:
    """The estimates on a file of recorded steps: importance sampling, unless other methods are named."""
    from podium.episodes import evaluate as evaluate_recorded

    steps, policies, given = recorded(options)
    return evaluate_recorded(
        steps,
        policies,
        **given,
        estimators=options.estimator or list(EPISODIC),
        baseline=baseline_of(options.baseline),
        behavior=behavior_of(options),
        **method_options(options),
    )


STEPS = ("bounds", "horizon", "gamma")


def recorded(options: argparse.Namespace) -> tuple[list[Any], dict[str, str], dict[str, Any]]:
    """The episodes of a file of steps, the policies, and the options that belong to episodes."""
    from podium.episodes import read

    refuse_options(options, ("propensity", "time", "unit", "text", "actions"), "has no meaning with --episodes")
    steps: list[Any] = [
        *read(options.log, action=options.action, reward=options.reward, observation=options.state or ())
    ]
    given = {name: getattr(options, name) for name in STEPS if getattr(options, name) is not None}
    return steps, policies_of(options) or {}, given


def refuse_options(options: argparse.Namespace, names: Sequence[str], why: str) -> None:
    for name in names:
        if getattr(options, name) is not None:
            raise PodiumError(f"--{name} {why}", hint=f"see podium {options.run} --help.")


def run_plan(options: argparse.Namespace) -> int:
    show(
        plan(open_log(options), policies_of(options), difference=options.difference, **judge_options(options)), options
    )
    return 0


def run_evaluate(options: argparse.Namespace) -> int:
    if options.episodes:
        show(evaluate_episodes(options), options)
        return 0
    refuse_options(options, STEPS, "needs --episodes")
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
    from podium.worlds.demo import run_demo as run

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
        download=options.download,
        verdict_logs=options.verdict_logs,
        **named,
    )
    table = agreement_table(done.tables, options.replay) if groups(done.tables) else None
    return show_written(done.folder, table, done.data)


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


def show_written(folder: Path, table: Table | None, data: str = "") -> int:
    """How printed and reproduced numbers agree, where the data came from, and where everything is."""
    if table is not None:
        print(table.text(terminal_width()))
    if data:
        print(f"\nData: {data}")
    print(f"\nWritten: {folder / 'index.html'} (open it in a browser), tables/, sweeps/, figures/, results.json")
    return 0


def run_completion(options: argparse.Namespace) -> int:
    from podium.command.completion import completion_script

    print(completion_script(build_parser(), options.shell))
    return 0


COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "demo": run_demo,
    "compare": run_compare,
    "plan": run_plan,
    "evaluate": run_evaluate,
    "spectrum": run_spectrum,
    "states": run_states,
    "check": run_check,
    "studio": run_studio,
    "reproduce_synthetic": run_reproduce_synthetic,
    "reproduce_classification": run_reproduce_classification,
    "reproduce_rl": run_reproduce_rl,
    "completion": run_completion,
}


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


if __name__ == "__main__":
    raise SystemExit(main())
