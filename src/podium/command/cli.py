"""The command `podium`: demo, compare, evaluate, spectrum, states, check, plan, studio, reproduce, completion.

Exit codes: 0 done; 2 bad input or usage (message on stderr, nothing written); with --gate 0 holds, 3 cannot tell,
4 the opposite holds; 130 interrupted.
"""

from __future__ import annotations

import argparse
import contextlib
import io
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from podium.command.arguments import build_parser
from podium.command.options import (
    STEPS,
    baseline_of,
    behavior_of,
    judge_arguments,
    method_arguments,
    open_log,
    policies_of,
    recorded,
    refuse_options,
)
from podium.command.terminal import show, terminal_width
from podium.comparison.compare import compare, plan
from podium.comparison.diagnostics import Diagnosis, diagnose
from podium.comparison.planning import Plan
from podium.comparison.spectrum import Spectrum, spectrum
from podium.comparison.states import StateComparison, compare_states
from podium.data.errors import PodiumError
from podium.estimates.estimators import EPISODIC, ESTIMATORS
from podium.estimates.evaluate import Estimates, evaluate
from podium.outputs.display import printable, wrap


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; every error that a user can cause becomes a message, never a traceback."""
    if isinstance(sys.stdout, io.TextIOWrapper):  # a label that the terminal cannot show is no reason to stop
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        options = build_parser().parse_args(arguments)
        options.command = shlex.join(["podium", *(sys.argv[1:] if arguments is None else arguments)])
        result = run(options)
        sys.stdout.flush()
        return result
    except PodiumError as error:
        return complain(str(error))
    except KeyboardInterrupt:
        complain("interrupted")
        return 130
    except BrokenPipeError:  # the reader (head, less) has seen enough
        drop_output()
        return 0
    except OSError as error:
        drop_output()
        return complain(f"cannot write the answer: {error.strerror}", "make room for it.")
    except MemoryError:
        return complain("the log does not fit into memory", "use fewer rows or columns.")
    except Exception as error:
        if os.environ.get("PODIUM_DEBUG"):
            raise
        hint = "this is a fault of podium, not of your log; PODIUM_DEBUG=1 shows where it happened."
        return complain(printable(f"{type(error).__name__}: {error}"), hint)


def complain(message: str, hint: str = "") -> int:
    """Say what is wrong, and return the exit code for it."""
    text = f"podium: {message}" + (f"\n\nHint: {hint}" if hint else "")
    print("\n".join(printable(line) for line in text.split("\n")), file=sys.stderr)
    return 2


def drop_output() -> None:
    """What is still to be written goes nowhere, so that Python does not complain at its end."""
    with contextlib.suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


# --- commands that show one result -------------------------------------------------------------------------------


def find_plan(options: argparse.Namespace) -> Plan:
    return plan(open_log(options), policies_of(options), difference=options.difference, **judge_arguments(options))


def find_estimates(options: argparse.Namespace) -> Estimates:
    """The estimates; on a file of recorded steps by importance sampling, unless other methods are named."""
    how = {
        "baseline": baseline_of(options.baseline), "behavior": behavior_of(options), **method_arguments(options)
    }  # fmt: skip
    if options.episodes:
        from podium.episodes import evaluate as evaluate_recorded

        steps, policies, given = recorded(options)
        return evaluate_recorded(steps, policies, **given, estimators=options.estimator or list(EPISODIC), **how)
    refuse_options(options, STEPS, "needs --episodes")
    return evaluate(open_log(options), policies_of(options), options.estimator or list(ESTIMATORS), **how)


def find_spectrum(options: argparse.Namespace) -> Spectrum:
    return spectrum(
        open_log(options),
        policies_of(options),
        [baseline_of(text) for text in options.baseline or ("mean", "linear")],
        options.estimator or "all",
        level=options.level,
        lower_is_better=options.lower_is_better,
        behavior=behavior_of(options),
        seed=options.seed,
        sample_rows=options.sample_rows,
    )


def find_states(options: argparse.Namespace) -> StateComparison:
    return compare_states(
        open_log(options),
        policies_of(options),
        options.estimator,
        baseline_of(options.baseline),
        lower_is_better=options.lower_is_better,
        behavior=behavior_of(options),
        **method_arguments(options),
    )


def find_diagnosis(options: argparse.Namespace) -> Diagnosis:
    return diagnose(open_log(options), policies_of(options), **judge_arguments(options))


# --- commands that do more ---------------------------------------------------------------------------------------


def run_compare(options: argparse.Namespace) -> int:
    judged = {"bootstrap": options.bootstrap, **judge_arguments(options)}
    if options.episodes:
        from podium.episodes import compare as compare_recorded

        steps, policies, given = recorded(options)
        judged["estimator"] = judged["estimator"] or "LDE"
        result = compare_recorded(steps, policies, **given, **judged)
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


def run_demo(options: argparse.Namespace) -> int:
    from podium.worlds.demo import run_demo as run

    run(Path(options.out), terminal_width())
    return 0


def run_studio(options: argparse.Namespace) -> int:
    from podium.studio.server import ServerOptions, serve

    serve(ServerOptions(options.host, options.port, not options.no_browser, options.max_upload, options.max_rows))
    return 0


def run_completion(options: argparse.Namespace) -> int:
    from podium.command.completion import completion_script

    print(completion_script(build_parser(), options.shell))
    return 0


def run_reproduce(options: argparse.Namespace) -> int:
    from podium.command.experiments import reproduce

    return reproduce(options)


RESULTS: dict[str, Callable[[argparse.Namespace], Any]] = {
    "plan": find_plan, "evaluate": find_estimates, "spectrum": find_spectrum, "states": find_states,
    "check": find_diagnosis,
}  # fmt: skip
COMMANDS: dict[str, Callable[[argparse.Namespace], int]] = {
    "demo": run_demo, "compare": run_compare, "studio": run_studio, "reproduce": run_reproduce,
    "completion": run_completion,
}  # fmt: skip


def run(options: argparse.Namespace) -> int:
    """Do what a command asks for, and return its exit code."""
    if options.run in COMMANDS:
        return COMMANDS[options.run](options)
    show(RESULTS[options.run](options), options)
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
