"""Simulate families with known truth and count right and wrong claims, ours and the peers', on the same draws.

python -m podium.calibration                         # the whole bench, about an hour on two cores
python -m podium.calibration --quick                 # a faithful small version, under two minutes
python -m podium.calibration --out calibration.md    # as a page
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence
from pathlib import Path

from podium.data.files import check_output, write_output
from podium.experiments.calibration.families import FAMILIES
from podium.experiments.calibration.tables import counts_csv, report
from podium.experiments.calibration.trials import ROWS, simulate


def main(arguments: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(
        prog="python -m podium.calibration", description="Measure how honest verdicts are."
    )
    parser.add_argument("--logs", type=int, default=40, help="per family and N (default: %(default)s)")
    parser.add_argument("--seed", type=int, default=2026)
    parser.add_argument("--rows", type=int, nargs="*", default=ROWS)
    parser.add_argument("--families", nargs="*", help="by (part of) their names; by default the fixed grid")
    parser.add_argument("--every", action="store_true", help="also the stress families and variants")
    parser.add_argument("--quick", action="store_true", help="4 logs per cell, N = 50 and 300")
    parser.add_argument("--workers", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--out", type=Path, help="write the tables as a page")
    parser.add_argument("--csv", type=Path, help="write the counts of each cell")
    parser.add_argument("--overwrite", action="store_true", help="also replace files that podium did not write")
    options = parser.parse_args(arguments)
    for path in filter(None, (options.out, options.csv)):
        check_output(path, overwrite=options.overwrite)
    names = [n for n, f in FAMILIES.items() if options.every or not f.variant]
    if options.families:
        names = [n for n in FAMILIES if any(part in n for part in options.families)]
    rows, logs = ((50, 300), 4) if options.quick else (options.rows, options.logs)
    trials = simulate(names, rows, logs, options.seed, options.workers)
    text = report(trials)
    print(text)
    if options.out:
        command = " ".join(["python -m podium.calibration", *(sys.argv[1:] if arguments is None else arguments)])
        page = f"# Calibration\n\nMade by `{command}`.\n\n```text\n{text}\n```\n"
        write_output(options.out, page, overwrite=options.overwrite)
    if options.csv:
        write_output(options.csv, counts_csv(trials), overwrite=options.overwrite)


if __name__ == "__main__":
    main()
