"""`podium demo`: a health programme's log, compared, with the truth that only a simulator knows beside it."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from podium.comparison.compare import compare
from podium.data.errors import PodiumError
from podium.data.exports import read_log
from podium.data.files import check_output
from podium.outputs.display import Table, number, wrap
from podium.worlds.simulator import DEFAULT_ROWS, DEFAULT_SEED, Programme


def run_demo(folder: Path, width: int, overwrite: bool = False) -> None:
    """Write the example's log and report into a folder and print the comparison beside the truth."""
    programme = Programme()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PodiumError(f"cannot make the folder {str(folder)!r}: {error.strerror}", hint="use --out DIR.") from error
    path, report = folder / "log.csv", folder / "report.html"
    check_output(report, overwrite=overwrite)  # nothing is written unless both files can be
    programme.draw(DEFAULT_ROWS, DEFAULT_SEED).write_csv(path, overwrite=overwrite)
    result = compare(read_log(path))
    command = "podium compare log.csv --html report.html"
    result.report(report, command=command, source="log.csv", overwrite=overwrite)

    question = f"A health programme has logged {DEFAULT_ROWS} reminders. Which of five policies should it use?"
    print(wrap(question, width, "") + "\n")
    print(result.text(width))
    truth = programme.true_values()
    print("\n" + truth_table(result.ranking, truth).text(width))
    claims = [p for p in result.pairs if p.verdict != "cannot tell"]
    right = sum((p.verdict == "better") == (truth[p.a] > truth[p.b]) for p in claims)
    print(f"\nOf {len(result.pairs)} pairs {len(claims)} are decided, {right} of them rightly.")
    log, command = shortest(path), command_name()
    print(
        f"\nWritten: {log}, {shortest(report)} (open it in a browser)\n"
        f"\nNext: another method, other policies, can this log be trusted, each state:\n"
        f"  {command} compare {log} --estimator DRE\n"
        f"  {command} compare {log} --policy now=logged \\\n"
        f"      --policy sms=constant:sms\n"
        f"  {command} check {log}\n"
        f"  {command} states {log}\n"
        f"  {command} plan {log} --difference 0.05\n"
        f'  {command} compare {log} --gate "personalised > current"\n'
        f"Your own log: the columns action, reward, pi_<name> for each policy, and state."
    )


def shortest(path: Path) -> str:
    return min(os.path.relpath(path), str(path), key=len)


def command_name() -> str:
    """How the user can call podium from this folder."""
    if shutil.which("podium"):
        return "podium"
    script = Path(sys.argv[0])
    return shortest(script) if script.name == "podium" else f"{shortest(Path(sys.executable))} -m podium"


def truth_table(ranking: list[str], truth: dict[str, float]) -> Table:
    """The ranking beside what is true."""
    order = sorted(truth, key=lambda name: -truth[name])
    rows = [[str(i + 1), name, number(truth[name]), str(order.index(name) + 1)] for i, name in enumerate(ranking)]
    return Table(
        "The truth, known because the log is simulated",
        ["rank", "policy", "true value", "true rank"],
        rows,
        "rlrr",
    )
