"""`podium demo`: a health programme's log, compared, with the truth that only a simulator knows beside it."""

from __future__ import annotations

import os
from pathlib import Path

from podium.compare import compare
from podium.display import Table, number
from podium.errors import PodiumError
from podium.io import read_log
from podium.simulator import DEFAULT_ROWS, DEFAULT_SEED, Programme


def run_demo(folder: Path, width: int) -> None:
    """Write the example's log and report into a folder and print the comparison beside the truth."""
    programme = Programme()
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise PodiumError(f"cannot make the folder {str(folder)!r}: {error.strerror}", hint="use --out DIR.") from error
    path = folder / "log.csv"
    programme.draw(DEFAULT_ROWS, DEFAULT_SEED).write_csv(path)
    result = compare(read_log(path))
    report = result.report(folder / "report.html")

    print(f"A health programme has logged {DEFAULT_ROWS} reminders. Which of five policies should it use?\n")
    print(result.text(width))
    truth = programme.true_values()
    print("\n" + truth_table(result.ranking, truth).text(width))
    claims = [p for p in result.pairs if p.verdict != "cannot tell"]
    right = sum((p.verdict == "better") == (truth[p.a] > truth[p.b]) for p in claims)
    print(f"\nOf {len(result.pairs)} pairs {len(claims)} are decided, {right} of them rightly.")
    log = os.path.relpath(path)
    print(
        f"\nWritten: {log}, {os.path.relpath(report)} (open it in a browser)\n"
        f"\nNext:\n"
        f"  podium compare {log} --estimator DRE      another method\n"
        f"  podium compare {log} --policy now=logged \\\n"
        f"      --policy \"rule=sql:CASE WHEN age > 65 THEN 'call' ELSE 'sms' END\"\n"
        f"  podium check {log}                        can this log be trusted?\n"
        f"  podium states {log}                       state by state\n"
        f"  podium compare YOUR_LOG.csv               columns: action, reward, pi_<name>, state"
    )


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
