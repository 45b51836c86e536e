"""The process that reads uploads: inspects, checks and compares, within limits, and tells how far it is.

python -m podium.studio.worker FOLDER MEMORY_BYTES: FOLDER holds task.json, and receives what is found. Lines of JSON on
standard output tell stages and errors. When standard input closes, the process ends.
"""

from __future__ import annotations

import json
import os
import sys
import threading
from pathlib import Path
from typing import Any

from podium.studio.disk import DISK_FULL, is_full_disk

HINTS = {  # what the command calls an option, the page calls by its place
    "--text": "tick 'names' for that column in the step Columns, or correct those rows in the file.",
    "--actions": "choose one of the log's actions.",
    "--policy": "add a policy in the step Policies.",
    "--state": "choose a state column in the step Columns.",
    "--behavior": "choose the propensity column in the step Columns, or let podium estimate propensities.",
    "podium.Policy": "probabilities lie between 0 and 1, and those of one row sum to 1.",
    "pip install": "install it where podium studio runs, and start the studio again.",
}


IN_PAGE = {  # the same in facts
    "(--state)": "(in the step Columns)",
    " (--drop-missing)": "",
    "; --state COL takes a column as state": "; the role State takes a column as state",
    "; --state COL takes other columns as state": "; the role State takes other columns",
    "; --sheet names another of ": "; the others are not read: ",
}
STEPS = {  # what the page has for the settings that solve a problem
    "action": "choose the column that is the action.",
    "reward": "choose the column that is the reward.",
    "success": "write the value that counts as 1 below, such as {}.",
    "date_format": "write the form of the dates below: {} if the day is first.",
    "drop_missing": "tick 'leave out rows' below, or fill the gaps in the file.",
    "text": HINTS["--text"],
}


def main(folder: Path, memory: int) -> int:
    limit(memory)
    end_with_parent()
    task = json.loads((folder / "task.json").read_text(encoding="utf-8"))
    try:
        TASKS[task["kind"]](task, folder)
        return 0
    except Exception as error:
        message, hint = words(error, task)
        tell(error=message, hint=hint)
        return 1


def words(error: Exception, task: dict[str, Any]) -> tuple[str, str]:
    """What to say of an error, and what to do about it."""
    from podium.data.errors import PodiumError
    from podium.data.refusals import Refused

    if is_full_disk(error):
        return DISK_FULL["message"], DISK_FULL["hint"]
    if isinstance(error, Refused):
        steps = [STEPS[name].format(value) for name, value in error.settings.items() if name in STEPS]
        return own_names(error.message, task), own_names(" ".join(steps) or in_studio(" ".join(error.hints)), task)
    if isinstance(error, PodiumError):
        return own_names(error.message, task), in_studio(own_names(error.hint, task))
    if isinstance(error, MemoryError):
        return "this needs more memory than a job may use", "use fewer rows or columns."
    if isinstance(error, RecursionError):
        return "the file is nested too deeply", "give numbers and texts."
    return f"the file could not be worked on ({type(error).__name__})", "check how it was written."


def limit(memory: int) -> None:
    """No more memory than this, no core files; where the system knows no limits (Windows) there are none."""
    try:
        import resource
    except ImportError:
        return
    resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def end_with_parent() -> None:
    """End when standard input closes, which it does when the studio ends, however that happens.

    A thread waits for it. On Linux a signal ends the process too, also while one long call keeps all threads waiting.
    """
    threading.Thread(target=wait_for_parent, daemon=True).start()
    if sys.platform == "linux":
        import fcntl

        fcntl.fcntl(0, fcntl.F_SETOWN, os.getpid())
        fcntl.fcntl(0, fcntl.F_SETFL, fcntl.fcntl(0, fcntl.F_GETFL) | os.O_ASYNC)  # SIGIO, which ends a process


def wait_for_parent() -> None:
    """Wait for standard input to close; read below Python's buffers, which would be locked when the process ends."""
    while os.read(0, 1024):
        pass
    os._exit(3)


def tell(**words: str) -> None:
    print(json.dumps(words), flush=True)


def own_names(text: str, task: dict[str, Any]) -> str:
    """A message in which files bear the names that their owner gave them."""
    for path, shown in {task["path"]: task["shown"], **task.get("files", {})}.items():
        text = text.replace(path, shown).replace(Path(path).name, shown)
    return text[:2000]


def in_studio(hint: str) -> str:
    """A hint that speaks of the page and not of the command."""
    return next((words for word, words in HINTS.items() if word in hint), hint)


def in_page(fact: str) -> str:
    """A warning or a reason whose remedy speaks of the page and not of the command."""
    from podium.data.facts import Fact

    if isinstance(fact, Fact) and "remedy" in fact.fields and "column" in fact.fields:
        fact = Fact(fact.code, **{**fact.fields, "remedy": "choose 'Leave out' for it in the step Columns"})
    if isinstance(fact, Fact) and fact.code == "long text":
        fact = Fact(fact.code, **{**fact.fields, "options": "choose the role State for it in the step Columns"})
    for option, words in IN_PAGE.items():
        fact = fact.replace(option, words)
    return fact


def write(folder: Path, name: str, content: Any) -> None:
    text = (
        content if isinstance(content, str) else json.dumps(content, allow_nan=False, ensure_ascii=False, default=str)
    )
    (folder / name).write_text(text, encoding="utf-8", errors="backslashreplace")


def inspect(task: dict[str, Any], folder: Path) -> None:
    """What the file holds, and which role each column seems to play."""
    from podium.data.guesses import group, guess, is_cost, with_few_labels
    from podium.studio.reading import survey

    if task.get("example"):
        from podium.worlds.simulator import Programme

        tell(stage="Making the example")
        Programme().draw().write_csv(task["path"])
    tell(stage="Reading the file")
    facts, notes = survey(Path(task["path"]), task["limits"])
    tell(stage="Looking at the columns")
    guessed = with_few_labels(guess(group(facts)))
    reward = next((f.header for f in guessed if f.role == "reward"), None)
    write(
        folder,
        "inspected.json",
        {
            "rows": facts[0].rows,
            "headers": [f.header for f in facts],
            "columns": [f.to_dict() for f in guessed],
            "preview": [list(row) for row in zip(*(f.first for f in facts), strict=True)],
            "cost": is_cost(reward),
            "notes": [own_names(in_page(note), task) for note in notes],
        },
    )


def check(task: dict[str, Any], folder: Path) -> None:
    """The log as podium reads it with these roles."""
    from podium.comparison.diagnostics import warnings_of
    from podium.data.exports import read_log
    from podium.data.roles import describe_states
    from podium.estimates.evaluate import rows_of
    from podium.estimates.options import Options

    tell(stage="Checking the log")
    if task["continuous"]:
        check_numbers(task, folder)
        return
    log = read_log(task["path"], **task["reading"])
    refuse_long_labels([str(a) for a in log.action_space], task["limits"]["name_length"])
    write(
        folder,
        "checked.json",
        {
            **log.to_dict(),
            "text": repr(log),
            "labels": [str(a) for a in log.action_space[:1000]],
            "state": describe_states(log),
            "read": [own_names(in_page(note), task) for note in log.notes],
            "warnings": [in_page(w) for w in warnings_of(rows_of(log, {"uniform": "uniform"}, Options()))],
        },
    )


def check_numbers(task: dict[str, Any], folder: Path) -> None:
    """The log as podium reads it where actions are numbers."""
    from podium.continuous import read_log
    from podium.data.roles import describe_states

    log = read_log(task["path"], **task["reading"])
    found = {
        **log.log.to_dict(),
        "propensities": "none" if log.densities is None else "densities",
        "text": repr(log),
        "labels": [],
        "low": float(log.actions.min()),
        "high": float(log.actions.max()),
        "state": describe_states(log.log),
        "read": [],
        "warnings": [in_page(w) for w in log.left_out],
    }
    write(folder, "checked.json", found)


def refuse_long_labels(labels: list[str], most: int) -> None:
    """Pages list the actions; a text of megabytes is none."""
    from podium.data.errors import PodiumError

    long = [label for label in labels if len(label) > most]
    if long:
        count = f"{len(long):,} actions have" if len(long) > 1 else "an action has"
        raise PodiumError(
            f"{count} more than {most} characters; one begins with {long[0][:40]!r}",
            hint="choose another column as the action, or give the actions shorter names.",
        )


def compare(task: dict[str, Any], folder: Path) -> None:
    """The answer: its JSON, its sentence, its report."""
    import podium
    from podium.data.roles import describe_states
    from podium.outputs.report import headline, page

    tell(stage="Reading the log")
    library: Any = podium.continuous if task["continuous"] else podium
    log = library.read_log(task["path"], **task["reading"])
    count = len(task["policies"])
    tell(stage=f"Comparing {count} policies on {len(log):,} rows")
    result = library.compare(log, task["policies"], **task["deciding"])
    tell(stage="Writing the report")
    write(folder, "report.html", page(result, command=task["command"], source=task["shown"]))
    write(folder, "result.json", result.to_dict())
    told = {
        "headline": headline(result),
        "state": describe_states(result.log),
        "adjustment": result.adjustment if result.adjusts else "",
        "warnings": [in_page(w) for w in result.warnings],
        "reasons": sorted({in_page(r) for p in result.pairs for r in p.reasons}),
    }
    write(folder, "answer.json", told)


TASKS = {"inspect": inspect, "check": check, "compare": compare}


if __name__ == "__main__":
    raise SystemExit(main(Path(sys.argv[1]), int(sys.argv[2])))
