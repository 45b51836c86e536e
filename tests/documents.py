"""Runs the examples of a Markdown page for a test to compare, or rewrites the output that the page shows under them.

A block of python followed by a block of text shows what it prints; in a block of console, each line after "$ " is
run and followed by what it prints. The blocks of one page share their variables and a folder.

    python tests/documents.py README.md     # write the real output into the page
"""

from __future__ import annotations

import contextlib
import io
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

EXAMPLE = re.compile(
    r"```python\n(?P<code>.*?)```\n(?:\n```text\n(?P<printed>.*?)```\n)?|```console\n(?P<session>.*?)```\n", re.DOTALL
)
PAGES = ["README.md", *(f"docs/{p.name}" for p in sorted((Path(__file__).parents[1] / "docs").glob("*.md")))]


def run_page(path: Path) -> str:
    """The page with the output that its examples really give."""
    page = path.read_text(encoding="utf-8")
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        os.chdir(folder)
        try:
            return EXAMPLE.sub(runner({"__name__": "page"}), page)
        finally:
            os.chdir(here)


def runner(variables: dict[str, object]) -> Callable[[re.Match[str]], str]:
    def run(match: re.Match[str]) -> str:
        if match["session"] is not None:
            return f"```console\n{run_session(match['session'])}```\n"
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed):
            exec(compile(match["code"], "page", "exec"), variables)
        shown = f"```python\n{match['code']}```\n"
        if match["printed"] is None:
            assert not printed.getvalue(), f"this prints something that the page does not show:\n{match['code']}"
            return shown
        return f"{shown}\n```text\n{printed.getvalue()}```\n"

    return run


def run_session(session: str) -> str:
    """The commands of a console block with what they print; `make` and `git` lines are left as they are."""
    commands = re.findall(r"^\$ (.*(?:(?<=\\)\n.*)*)", session, re.MULTILINE)
    if all(c.split()[0] in ("make", "git", "pip", "cd") for c in commands):
        return session
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    lines = []
    for command in commands:
        done = subprocess.run(
            command, shell=True, capture_output=True, text=True, env={**os.environ, "PATH": path}, timeout=120
        )
        assert done.returncode in (0, 3, 4), f"$ {command}\n{done.stdout}{done.stderr}"
        lines.append(f"$ {command}\n{done.stdout}")
    return "".join(lines)


if __name__ == "__main__":
    for name in sys.argv[1:]:
        target = Path(name).resolve()
        target.write_text(run_page(target), encoding="utf-8")
