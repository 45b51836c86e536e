"""The command `podium reproduce`: the paper's experiments, and where their results are."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

from podium.command.options import split
from podium.command.terminal import terminal_width
from podium.outputs.display import Table


def reproduce(options: argparse.Namespace) -> None:
    """Run an experiment and say how printed and reproduced numbers agree, and where everything is."""
    folder, table, data = EXPERIMENTS[options.experiment](options)
    if table is not None:
        print(table.text(terminal_width()))
    if data:
        print(f"\nData: {data}")
    print(f"\nWritten: {folder / 'index.html'} (open it in a browser), tables/, sweeps/, figures/, results.json")


def reproduce_synthetic(options: argparse.Namespace) -> tuple[Path, Table | None, str]:
    from podium.experiments.synthetic import reproduce
    from podium.experiments.synthetic.outputs import agreement_table

    rewards = options.reward or ("1.1", "1.2")
    done = reproduce(options.out, rewards=rewards, verdict_tests=options.verdict_tests, **shared(options))
    return done.folder, agreement_table(done.tables) if done.tables else None, ""


def reproduce_classification(options: argparse.Namespace) -> tuple[Path, Table | None, str]:
    from podium.experiments.classification import reproduce
    from podium.experiments.classification.outputs import agreement_table, groups

    given = {"datasets": options.datasets, "policies": options.policies}
    named: dict[str, Any] = {name: split(text, f"--{name}") for name, text in given.items() if text is not None}
    done = reproduce(
        options.out,
        **shared(options),
        readings=None if options.reading is None else [options.reading],
        data_dir=options.data_dir,
        download=options.download,
        verdict_logs=options.verdict_logs,
        **named,
    )
    return done.folder, agreement_table(done.tables, options.replay) if groups(done.tables) else None, done.data


def reproduce_rl(options: argparse.Namespace) -> tuple[Path, Table | None, str]:
    from podium.experiments.rl import reproduce

    own = {name: getattr(options, name) for name in ("environments", "seeds", "sb3_defaults", "constant")}
    done = reproduce(options.out, **own, **shared(options))
    from podium.experiments.rl.outputs import agreement_table

    return done.folder, agreement_table(done.tables), ""


def shared(options: argparse.Namespace) -> dict[str, Any]:
    """The options that experiments share."""
    names = ("replay", "quick", "seed", "workers", "scheduler")
    return {name: getattr(options, name) for name in names if hasattr(options, name)}


EXPERIMENTS = {"synthetic": reproduce_synthetic, "classification": reproduce_classification, "rl": reproduce_rl}
