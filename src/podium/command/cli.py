"""The command `podium`: demo, init, run, compare, evaluate, spectrum, states, check, plan, studio, reproduce and more.

Exit codes: 0 done; 2 bad input or usage (message on stderr, nothing written); with --gate 0 holds, 3 cannot tell,
4 the opposite holds; 130 interrupted.
"""

from __future__ import annotations

import argparse
import os
import shlex
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from podium.adapters.sb3 import trust
from podium.command.arguments import build_parser
from podium.command.exports import FirstLook, checked_log, first_look, look_at_log, with_command
from podium.command.numbers import check_commands, compare_numbers, evaluate_numbers
from podium.command.options import (
    STEPS,
    baseline_of,
    behavior_of,
    judge_arguments,
    known_arguments,
    method_arguments,
    note_inputs,
    policies_of,
    recorded,
    refuse_options,
)
from podium.command.question_file import AskedQuestion, read_question, told_of
from podium.command.question_keys import POLICY, question_keys
from podium.command.question_start import start_question
from podium.command.signals import Ended, ending_cleanly, interruptible
from podium.command.start import INTERRUPTED
from podium.command.terminal import complain, drop, prepare_streams, settle_streams, show, terminal_width
from podium.comparison.compare import compare, plan
from podium.comparison.diagnostics import Diagnosis, diagnose
from podium.comparison.planning import Plan, positive
from podium.comparison.result import Comparison
from podium.comparison.spectrum import Spectrum, spectrum
from podium.comparison.states import StateComparison, compare_states
from podium.data.errors import PodiumError
from podium.data.files import check_output
from podium.data.grouping import refuse_groups
from podium.data.log import Log
from podium.data.refusals import Refused
from podium.estimates.estimators import EPISODIC, ESTIMATORS
from podium.estimates.evaluate import Estimates, evaluate
from podium.outputs.display import printable, wrap


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command; every error that a user can cause becomes a message, never a traceback."""
    prepare_streams()
    with interruptible():
        try:
            return answer(arguments)
        except KeyboardInterrupt:
            complain("interrupted")
            return INTERRUPTED
        except Ended as end:
            complain(f"ended by {end.signal}")
            return end.exit_code
        finally:
            settle_streams()


def answer(arguments: Sequence[str] | None) -> int:
    """Read the arguments, do what they ask for, and return the exit code."""
    options = argparse.Namespace(exit_code=0)
    try:
        with ending_cleanly():
            build_parser().parse_args(arguments, options)
            options.argv = list(sys.argv[1:] if arguments is None else arguments)
            options.command = shlex.join(["podium", *options.argv])
            run(options)
            sys.stdout.flush()
        return int(options.exit_code)
    except Refused as error:
        return complain(str(with_command(error, options)))
    except PodiumError as error:
        return complain(str(error))
    except BrokenPipeError:  # the reader (head, less) has seen enough
        drop(sys.stdout)
        return int(options.exit_code)
    except OSError as error:
        drop(sys.stdout)
        if error.filename is not None:
            return complain(f"cannot use {error.filename!r}: {error.strerror}", "check the path and its permissions.")
        return complain(f"cannot write the answer: {error.strerror or error}", "free some disk space.")
    except MemoryError:
        return complain("there is not enough memory", "use fewer rows, columns, policies or bootstrap draws.")
    except Exception as error:
        if os.environ.get("PODIUM_DEBUG"):
            raise
        hint = "this is a fault of podium, not of your log; PODIUM_DEBUG=1 shows where it happened."
        return complain(printable(f"{type(error).__name__}: {error}"), hint)


# --- commands that show one result -------------------------------------------------------------------------------


def find_plan(options: argparse.Namespace) -> Plan:
    return plan(checked_log(options), policies_of(options), difference=options.difference, **judge_arguments(options))


def find_estimates(options: argparse.Namespace) -> Estimates:
    """The estimates; on a file of recorded steps by importance sampling, unless other methods are named."""
    how = {
        "baseline": baseline_of(options.baseline), "behavior": behavior_of(options),
        "lower_is_better": options.lower_is_better, **method_arguments(options),
    }  # fmt: skip
    if options.continuous:
        return evaluate_numbers(options)
    if options.episodes:
        from podium.episodes import evaluate as evaluate_recorded

        steps, policies, given = recorded(options)
        return evaluate_recorded(steps, policies, **given, estimators=options.estimator or list(EPISODIC), **how)
    refuse_options(options, STEPS, "needs --episodes")
    return evaluate(checked_log(options), policies_of(options), options.estimator or list(ESTIMATORS), **how)


def find_spectrum(options: argparse.Namespace) -> Spectrum:
    return spectrum(
        checked_log(options),
        policies_of(options),
        [baseline_of(text) for text in options.baseline or ("mean", "linear")],
        options.estimator or "all",
        level=options.level,
        lower_is_better=options.lower_is_better,
        behavior=behavior_of(options),
        seed=options.seed,
        sample_rows=options.sample_rows,
        **known_arguments(options),
    )


def find_states(options: argparse.Namespace) -> StateComparison:
    return compare_states(
        checked_log(options),
        policies_of(options),
        options.estimator,
        baseline_of(options.baseline),
        lower_is_better=options.lower_is_better,
        behavior=behavior_of(options),
        **method_arguments(options),
    )


def find_diagnosis(options: argparse.Namespace) -> Diagnosis | FirstLook:
    """The trust panel; of a file whose roles or policies are not named yet, what its columns seem to be."""
    try:
        log = checked_log(options)
    except Refused as error:
        named = (options.action, options.reward) != ("action", "reward") or options.policy
        if named or {"action", "reward"} <= {*error.columns}:
            raise
        return first_look(error, options)
    if not options.policy and isinstance(log, Log) and not any(h.startswith("pi_") for h in log.columns):
        return look_at_log(log, options)
    return diagnose(log, policies_of(options), **judge_arguments(options))


# --- commands that do more ---------------------------------------------------------------------------------------


def run_compare(options: argparse.Namespace) -> None:
    if options.difference is not None:
        positive("difference", options.difference)
    if options.html is not None:
        note_inputs(options)
        check_output(options.html, overwrite=options.overwrite)
    result: Comparison
    judged = {"bootstrap": options.bootstrap, "by": options.by or (), **judge_arguments(options)}
    if options.continuous:
        refuse_groups(judged, "continuous actions")
    if options.continuous:
        result = compare_numbers(options, options.bootstrap)
    elif options.episodes:
        from podium.episodes import compare as compare_recorded

        steps, policies, given = recorded(options)
        judged["estimator"] = judged["estimator"] or "LDE"
        result = compare_recorded(steps, policies, **given, **judged)
    else:
        refuse_options(options, STEPS, "needs --episodes")
        result = compare(checked_log(options), policies_of(options), **judged)
    gate = result.gate(options.gate) if options.gate is not None else None
    options.exit_code = 0 if gate is None else gate.exit_code  # known before anything is printed, which may fail
    if options.html is not None:
        result.report(
            options.html,
            command=options.command,
            source=Path(options.log).name,
            difference=options.difference,
            question=". ".join(question_lines(options)).removeprefix("Question: "),
            overwrite=options.overwrite,
        )
    show(result, options, ({} if gate is None else {"gate": gate.to_dict()}) | question_record(options))
    if not options.json:
        if gate is not None:
            print("\n" + wrap(gate.sentence(), terminal_width(), ""))
        if options.html:
            print(f"\nReport: {options.html}")
        if lines := question_lines(options):
            print("\n" + "\n".join(lines))


# --- question files ----------------------------------------------------------------------------------------------


def ask_question(options: argparse.Namespace) -> None:
    """Turn the options of `podium run` into those of `podium compare`."""
    keys = {key.action.dest: name for name, key in question_keys().items()}
    given = {keys[dest]: value for dest, value in vars(options).items() if dest in keys}
    named = [entry.partition("=")[0] for entry in given.get(POLICY, ())]
    arguments, asked = read_question(options.file, named).ask(given)
    vars(options).update(vars(build_parser().parse_args(arguments)), argv=arguments, question=asked)


def question_record(options: argparse.Namespace) -> dict[str, Any]:
    """What the JSON output says of the question file, where there is one."""
    asked: AskedQuestion | None = getattr(options, "question", None)
    return {} if asked is None else {"question": asked.to_dict()}


def question_lines(options: argparse.Namespace) -> list[str]:
    """The question file in words, where there is one."""
    asked: AskedQuestion | None = getattr(options, "question", None)
    return [] if asked is None else asked.lines()


def run_init(options: argparse.Namespace) -> None:
    print(start_question(options.log, options.file, overwrite=options.overwrite))


def run_demo(options: argparse.Namespace) -> None:
    from podium.worlds.demo import run_demo as run

    run(Path(options.out), terminal_width(), overwrite=options.overwrite)


def run_studio(options: argparse.Namespace) -> None:
    from podium.studio.server import ServerOptions, serve

    serve(ServerOptions(options.host, options.port, not options.no_browser, options.max_upload, options.max_rows))


def run_completion(options: argparse.Namespace) -> None:
    from podium.command.completion import completion_script

    print(completion_script(build_parser(), options.shell))


def run_reproduce(options: argparse.Namespace) -> None:
    from podium.command.experiments import reproduce

    reproduce(options)


RESULTS: dict[str, Callable[[argparse.Namespace], Any]] = {
    "plan": find_plan, "evaluate": find_estimates, "spectrum": find_spectrum, "states": find_states,
    "check": find_diagnosis,
}  # fmt: skip
COMMANDS: dict[str, Callable[[argparse.Namespace], None]] = {
    "demo": run_demo, "init": run_init, "compare": run_compare, "studio": run_studio, "reproduce": run_reproduce,
    "completion": run_completion,
}  # fmt: skip


def run(options: argparse.Namespace) -> None:
    """Do what a command asks for."""
    if options.run == "run":
        ask_question(options)
        with told_of(options.question):
            return run(options)
    for path in getattr(options, "trust", None) or ():
        trust(path)
    if getattr(options, "out", None) == "":
        raise PodiumError("the name of the folder is empty", hint="write --out . for the current folder.")
    check_commands(options)
    if options.run in COMMANDS:
        COMMANDS[options.run](options)
    else:
        show(RESULTS[options.run](options), options)


if __name__ == "__main__":
    raise SystemExit(main())
