"""Completion in real shells: what a user types before pressing Tab, and what stands there afterwards."""

import os
import pty
import re
import select
import shutil
import subprocess
import time
from pathlib import Path

import pytest

from podium.command.arguments import build_parser
from podium.command.completion import SHELLS, completion_script

pytestmark = pytest.mark.system

TYPED = {
    "podium eval": "evaluate",
    "podium ini": "init",
    "podium run lo": "log.csv",
    "podium compare lo": "log.csv",
    "podium compare log.csv --estim": "--estimator",
    "podium compare log.csv --estimator SNI": "SNIPS",
    "podium compare log.csv --estimator cI": "cIPS",
    "podium compare log.csv --baseline li": "linear",
    "podium reproduce syn": "synthetic",
    "podium completion f": "fish",
}


def program(shell: str) -> str:
    found = shutil.which(shell)
    assert found, f"{shell} is not installed; run: apt-get install {shell}"
    return found


def in_bash(script: Path, typed: str) -> list[str]:
    """The candidates that bash would offer: its completion function is called as Readline calls it."""
    code = (
        f"source {script}; COMP_WORDS=({typed}); COMP_CWORD=$((${{#COMP_WORDS[@]}} - 1)); COMP_LINE='{typed}'; "
        'spec=($(complete -p podium)); for i in "${!spec[@]}"; do [ "${spec[i]}" = -F ] && f=${spec[i+1]}; done; '
        '$f podium "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD-1]}"; printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run([program("bash"), "--norc", "-c", code], capture_output=True, text=True, timeout=60)
    return [line.strip() for line in done.stdout.splitlines()]


def in_fish(script: Path, typed: str) -> list[str]:
    """The candidates that fish would offer."""
    code = f"source {script}; complete --do-complete '{typed}'"
    done = subprocess.run([program("fish"), "--no-config", "-c", code], capture_output=True, text=True, timeout=60)
    assert not done.stderr
    return [line.split("\t")[0] for line in done.stdout.splitlines()]


def in_zsh(script: Path, typed: str) -> list[str]:
    """The last word of the line after a press of Tab in an interactive zsh."""
    zsh = program("zsh")
    child, terminal = pty.fork()
    if child == 0:
        os.execve(zsh, [zsh, "-f", "-i"], {**os.environ, "TERM": "dumb", "PS1": "$ "})
    setup = (
        "PS1=; autoload -Uz compinit; compinit -D -u; "
        f'eval "$(cat {script})"; '
        'show() { print -r -- "<<$BUFFER>>"; BUFFER=; zle accept-line }; zle -N show; bindkey "^X" show; echo rea""dy\n'
    )
    try:
        talk(terminal, setup, "ready")
        answer = talk(terminal, f"{typed}\t\x18", ">>")
    finally:
        os.close(terminal)
        os.waitpid(child, 0)
    found = re.search(r"<<(.*?)>>", answer, re.DOTALL)
    assert found, answer
    return found[1].split()[-1:]


def talk(terminal: int, text: str, until: str) -> str:
    """What a terminal shows after some keys, up to a mark."""
    os.write(terminal, text.encode())
    seen, stop = "", time.monotonic() + 60
    while until not in seen:
        assert time.monotonic() < stop, f"{until!r} never came: {seen!r}"
        if select.select([terminal], [], [], 1)[0]:
            seen += os.read(terminal, 65536).decode(errors="replace")
    return seen


@pytest.mark.parametrize("shell", SHELLS)
def test_a_shell_completes_commands_options_values_and_files(
    shell: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = tmp_path / f"_podium.{shell}"
    script.write_text(completion_script(build_parser(), shell), encoding="utf-8")
    (tmp_path / "log.csv").touch()
    monkeypatch.chdir(tmp_path)
    complete = {"bash": in_bash, "zsh": in_zsh, "fish": in_fish}[shell]
    for typed, expected in TYPED.items():
        assert expected in complete(script, typed), typed
