"""What the command prints: results as JSON, or as tables that fit the terminal; streams that fail do no harm."""

from __future__ import annotations

import argparse
import contextlib
import io
import json
import os
import shutil
import sys
from collections.abc import Mapping
from typing import Any, TextIO

from podium.comparison.conditions import GateAnswer
from podium.comparison.result import Comparison
from podium.data.errors import PodiumError
from podium.data.files import append_text
from podium.outputs.display import printable

STEP_SUMMARY = "GITHUB_STEP_SUMMARY"  # names the file that GitHub Actions shows after a step

# --- streams -----------------------------------------------------------------------------------------------------


def prepare_streams() -> None:
    """Streams that can be written to: a closed one leads nowhere; a label that it cannot show does not stop anything.

    No file may take the place of a closed stream either, since whatever prints by number would write into that file.
    """
    while (nowhere := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(nowhere, True)
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:  # closed before Python started
            setattr(sys, name, os.fdopen(os.dup(nowhere), "w", encoding="utf-8", closefd=False))
    os.close(nowhere)
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")


def complain(message: str, hint: str = "") -> int:
    """Say what is wrong, and return the exit code for it."""
    text = f"podium: {message}" + (f"\n\nHint: {hint}" if hint else "")
    try:
        print("\n".join(printable(line) for line in text.split("\n")), file=sys.stderr, flush=True)
    except OSError:  # the terminal was closed, or the disk is full
        drop(sys.stderr)
    return 2


def settle_streams() -> None:
    """Write what waits to be written; what cannot be written goes nowhere, so that Python ends without complaint."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            drop(stream)


def drop(stream: TextIO) -> None:
    """Let a stream lead nowhere from now on."""
    with contextlib.suppress(OSError):
        nowhere = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nowhere, stream.fileno())
        os.close(nowhere)


# --- results -----------------------------------------------------------------------------------------------------


def show(result: Any, options: argparse.Namespace, more: Mapping[str, Any] | None = None) -> None:
    """A result as JSON, or as tables that fit the terminal; plain when piped."""
    if options.json:
        plain = not (sys.stdout.encoding or "").lower().startswith("utf")
        data = result.to_dict() | dict(more or {})
        print(json.dumps(data, indent=1, allow_nan=False, ensure_ascii=plain, default=plain_json))
        return
    print(result.text(terminal_width(), is_bold()))


def show_comparison(result: Comparison, options: argparse.Namespace, gate: GateAnswer | None) -> None:
    """A comparison as JSON, Markdown or tables, with the answer of its gate."""
    if options.json:
        show(result, options, {} if gate is None else {"gate": gate.to_dict()})
    elif options.markdown:
        print(result.to_markdown(gate, options.verbose), end="")
    else:
        print(result.text(terminal_width(), is_bold(), options.verbose, gate))


def is_bold() -> bool:
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def append_to_step_summary(text: str) -> None:
    """Add Markdown to the summary of a GitHub Actions step, if this process is one; a failure is a warning."""
    path = os.environ.get(STEP_SUMMARY)
    if not path:
        return
    try:
        append_text(path, text)
    except PodiumError as error:
        complain(f"warning: the step summary was not written: {error.message}")


def plain_json(value: Any) -> Any:
    if hasattr(value, "item"):
        return value.item()
    return str(value)


def terminal_width() -> int:
    """Columns of the terminal, between 60 and 120; 80 when piped."""
    return max(60, min(shutil.get_terminal_size((80, 24)).columns, 120)) if sys.stdout.isatty() else 80
