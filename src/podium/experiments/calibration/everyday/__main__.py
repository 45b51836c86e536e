"""Measure verdicts on everyday logs: weak effects, sparse rewards, ties, many policies and real randomized trials.

python -m podium.calibration.everyday                                  # every set, about 25 CPU minutes
python -m podium.calibration.everyday --sets weak ties --logs 2        # a quick look at two sets
python -m podium.calibration.everyday --budget 5                       # as many logs as 5 CPU minutes allow
python -m podium.calibration.everyday --pages docs/trials.md           # fill the tables of a page

Every finished unit of work is kept in the folder of the results: the same command goes on where an earlier one stopped.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Sequence
from pathlib import Path

from podium.data.files import write_output, write_text
from podium.experiments.calibration.everyday.families import SETS
from podium.experiments.calibration.everyday.results import counts_csv, run
from podium.experiments.calibration.everyday.tables import SECTIONS, earlier_table, section, update_page
from podium.experiments.calibration.everyday.trials import VIEWS
from podium.experiments.calibration.everyday.units import Setting, all_families, units
from podium.experiments.runner import check_start, end_workers, run_bench

COMMAND = "python -m podium.calibration.everyday"


def parser() -> argparse.ArgumentParser:
    p = argparse.ArgumentParser(prog=COMMAND, description="Measure how honest verdicts on everyday logs are.")
    p.add_argument("--sets", nargs="+", choices=SETS, default=SETS, metavar="SET", help=", ".join(SETS))
    p.add_argument("--part", choices=("tuned", "held-out", "both"), default="both", help="families (default: both)")
    p.add_argument("--families", nargs="+", metavar="TEXT", help="only families whose names contain one of these")
    p.add_argument("--rows", nargs="+", type=int, help="only these N (default: those of each family)")
    p.add_argument("--policies", nargs="+", type=int, help="K (default: those of each family)")
    p.add_argument(
        "--logs",
        type=int,
        default=8,
        help="logs per family, N and K; trials get twice as many, N over 1,000 fewer (default: %(default)s)",
    )
    p.add_argument("--seed", type=int, default=17)
    p.add_argument(
        "--budget",
        type=float,
        default=25.0,
        metavar="MINUTES",
        help="CPU time, over all runs into the folder (default: %(default)g)",
    )
    p.add_argument("--workers", type=int, default=1, help="processes (default: 1)")
    p.add_argument("--trials", metavar="FOLDER", help="folder with further trials, one CSV file each")
    p.add_argument("--folder", type=Path, default=Path("everyday-results"), help="results (default: %(default)s)")
    p.add_argument(
        "--pages",
        type=Path,
        nargs="+",
        default=(),
        metavar="FILE",
        help="pages whose regions <!-- everyday: NAME --> are filled anew",
    )
    p.add_argument("--earlier", type=Path, metavar="CSV", help="counts.csv of an earlier run to compare with")
    p.add_argument("--overwrite", action="store_true", help="also use a folder that podium did not make")
    return p


def main(arguments: Sequence[str] | None = None) -> None:
    options = parser().parse_args(arguments)
    check_start(options.seed, options.workers, ["joblib"] if options.workers > 1 else [], "the bench")
    settings = chosen(options)
    measured, seconds = run(
        settings, options.folder, logs=options.logs, seed=options.seed, trials=options.trials, workers=options.workers,
        budget=60 * options.budget, overwrite=options.overwrite,
    )  # fmt: skip
    end_workers()
    tables = {name: table for name in (*SECTIONS, *VIEWS) if (table := section(name, measured))}
    if options.earlier:
        tables["earlier"] = earlier_table(measured, options.earlier)
    asked = sum(cell.arguments["logs"] for group in units(settings, options.logs) for cell in group)
    text = "\n\n".join(f"## {name}\n\n{table}" for name, table in tables.items())
    head = headline(options, sum(m.logs for m in measured), asked)
    tables["made by"] = head
    print(f"{head}\n\n{text}\n\n{seconds / 60:.1f} CPU minutes")
    own = options.folder / "tables"  # the folder is podium's own, see `cells_folder`
    own.mkdir(exist_ok=True)
    write_text(own / "counts.csv", counts_csv(measured))
    write_text(own / "everyday.md", f"# Everyday logs\n\n{head}\n\n{text}\n")
    for path in options.pages:
        page = update_page(path.read_text(encoding="utf-8"), lambda name: tables.get(name) or section(name, measured))
        write_output(path, page, overwrite=True)


def headline(options: argparse.Namespace, done: int, asked: int) -> str:
    """The command without the places of files, and how much of it was done."""
    words = [COMMAND]
    for name in ("sets", "part", "families", "rows", "policies", "logs", "seed", "budget", "trials"):
        value = getattr(options, name)
        if value != parser().get_default(name):
            values = ["FOLDER"] if name == "trials" else value if isinstance(value, list) else [value]
            words += [f"--{name}", *(shlex.quote(f"{x:g}" if isinstance(x, float) else str(x)) for x in values)]
    return f"Made by `{' '.join(words)}`: {done:,} of {asked:,} logs."


def chosen(options: argparse.Namespace) -> list[Setting]:
    """The settings that the options ask for."""
    found = []
    for family in all_families(options.trials).values():
        wanted = family.set in options.sets and options.part in ("both", "held-out" if family.held_out else "tuned")
        if not wanted or (options.families and not any(text in family.name for text in options.families)):
            continue
        rows = [n for n in family.rows if not options.rows or n in options.rows]
        found += [Setting(family, n, k) for n in rows for k in options.policies or family.policies]
    return found


if __name__ == "__main__":
    run_bench(main)
