"""Question files: a comparison written down as TOML, which `podium run` answers and others can read.

The keys are the options of `podium compare`, taken from its parser, so an answer of `podium run` is the answer of
`podium compare` with these options. `read_question` and `parse_question` read and check a file, `question_text` writes
one, `Question.ask` gives the arguments of `podium compare`.
"""

from __future__ import annotations

import hashlib
import os
import shlex
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from podium.command.arguments import QUESTION_FILE
from podium.command.question_keys import FILE, POLICY, SECTIONS, Key, question_keys
from podium.comparison.conditions import parse_gate
from podium.data.errors import PodiumError, meant, shown
from podium.data.files import note_input
from podium.data.paths import ADDRESS, PATTERN, exists
from podium.data.refusals import problems_text
from podium.data.toml import Document, read_toml, toml_key, toml_value
from podium.policies.specs import FORMS

NO_POLICIES = "no policies to compare"
START = "podium init LOG writes a question file."


# --- reading -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Question:
    """A question file that was read and checked."""

    name: str
    folder: str  # where it lies, which its paths are read from
    sha256: str
    sections: Mapping[str, Mapping[str, Any]]

    def ask(self, given: Mapping[str, Any] | None = None) -> tuple[list[str], AskedQuestion]:
        """The arguments of `podium compare`, and what an answer records of the question.

        `given` are options of the command line, by their names: they replace those of the file. Options that are
        tables, such as the policies, are replaced name by name.
        """
        keys = question_keys()
        asked = {key.name: key.values(value, self.folder) or [] for key, value in items(self.sections, keys)}
        overridden: dict[str, list[str]] = {}
        for name, value in (given or {}).items():
            key = keys[name]
            texts = [str(x) for x in value] if isinstance(value, list) else [""] * bool(value)
            texts = texts if key.is_flag or isinstance(value, list) else [str(value)]
            before = asked.get(name, [])
            asked[name] = with_parts(before, texts) if key.names_parts else texts
            changed = [text for text in texts if not key.names_parts or text not in before]
            if asked[name] != before and key.section != "report":
                overridden[name] = key.words(changed)
        words = [word for name, texts in asked.items() if name != FILE for word in keys[name].words(texts)]
        return ["compare", *asked[FILE], *words], AskedQuestion(self.name, self.sha256, overridden)


@dataclass(frozen=True)
class AskedQuestion:
    """What an answer records of its question file, so that it can be shown which question was asked."""

    file: str
    sha256: str
    overridden: Mapping[str, Sequence[str]]  # options of the command line that changed the question, as words

    def to_dict(self) -> dict[str, Any]:
        return {"file": self.file, "sha256": self.sha256, "overridden": [*self.overridden_words()]}

    def lines(self) -> list[str]:
        """The same for people."""
        changed = shlex.join(self.overridden_words())
        said = [f"Overridden on the command line: {changed}"] if changed else []
        return [f"Question: {self.file}, SHA-256 {self.sha256}", *said]

    def overridden_words(self) -> Iterator[str]:
        for words in self.overridden.values():
            yield from words


def with_parts(before: Sequence[str], given: Sequence[str]) -> list[str]:
    """NAME=SPEC texts, those of a name that is given again replaced."""
    parts = {text.partition("=")[0]: text for text in before}
    return [*(parts | {text.partition("=")[0]: text for text in given}).values()]


def items(sections: Mapping[str, Mapping[str, Any]], keys: Mapping[str, Key]) -> Iterator[tuple[Key, Any]]:
    """What the file says, key by key, the policies as one."""
    for section in SECTIONS:
        entries = sections.get(section, {})
        for name, value in [(POLICY, entries)] if section == "policies" else entries.items():
            yield keys[name], value


def read_question(path: str | Path = QUESTION_FILE, policies: Sequence[str] = ()) -> Question:
    """Read and check a question file; all of its problems are told at once.

    `policies` are names of policies that are given elsewhere, which a gate may mention.
    """
    try:
        content = Path(path).read_bytes()
    except FileNotFoundError as error:
        raise PodiumError(f"there is no file {str(path)!r}", hint=f"{START} podium run FILE answers it.") from error
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or error
        raise PodiumError(f"cannot read {str(path)!r}: {reason}", hint="check the path and its permissions.") from error
    note_input(path)
    return parse_question(content, Path(path).name, os.path.dirname(path), policies)


def parse_question(
    content: bytes, name: str = QUESTION_FILE, folder: str = "", policies: Sequence[str] = ()
) -> Question:
    """Check the content of a question file whose paths are read from a folder."""
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise PodiumError(f"{name}, line {line}: this is not UTF-8", hint="save the file as UTF-8.") from error
    document = read_toml(text, name) if name.endswith(".toml") else read_toml(text, name, START)
    problems = sorted(problems_of(document, folder, policies), key=lambda problem: problem[0])
    if len(problems) == 1:
        line, said, hint = problems[0]
        raise PodiumError(f"{name}, line {line}: {said}" if line else f"{name}: {said}", hint=hint)
    if problems:
        said = problems_text(name, [f"line {line}: {said}" if line else said for line, said, _ in problems])
        hints = dict.fromkeys(hint[:1].upper() + hint[1:] for _, _, hint in problems)
        raise PodiumError(said, hint=" ".join(hints))
    return Question(name, folder, hashlib.sha256(content).hexdigest(), document.tables)


def problems_of(document: Document, folder: str, elsewhere: Sequence[str]) -> Iterator[tuple[int, str, str]]:
    """What is wrong with a file: line, sentence and hint; line 0 where something is not there."""
    keys = question_keys()
    for section, entries in document.tables.items():
        if section not in SECTIONS:
            yield document.line(section), *unknown_section(section, entries, keys)
        elif not isinstance(entries, Mapping):
            hint = f"write [{section}] on a line of its own, and its keys below."
            yield document.line(section), f"{section} must be a section; it is {shown(entries)}", hint
        else:
            for name, value in entries.items():
                for said, hint in entry_problems(section, name, value, keys, folder):
                    yield document.line(section, name), said, hint
    log, policies, question = (document.tables.get(part) for part in ("log", "policies", "question"))
    if "log" not in document.tables or (isinstance(log, Mapping) and FILE not in log):
        yield 0, "it does not name the log", f'write file = "log.csv" below [log]; {START}'
    if isinstance(question, Mapping) and isinstance(question.get("gate"), str) and isinstance(policies, Mapping):
        try:
            if policies and all(isinstance(spec, str) for spec in policies.values()):
                parse_gate(question["gate"], [*policies, *elsewhere])
        except PodiumError as error:
            yield document.line("question", "gate"), error.message, error.hint.replace("--gate ", "gate = ")


def unknown_section(section: str, entries: Any, keys: Mapping[str, Key]) -> tuple[str, str]:
    """What to say of a section or a key at the top that no question has."""
    key = keys.get(section)
    if key is not None and key.section and not isinstance(entries, Mapping):
        return f"{section!r} stands outside of a section", f"move it below [{key.section}]."
    known = ", ".join(f"[{name}]" for name in SECTIONS)
    return f"there is no section [{section}]", f"{meant(section, SECTIONS)}the sections are {known}."


def entry_problems(
    section: str, name: str, value: Any, keys: Mapping[str, Key], folder: str
) -> Iterator[tuple[str, str]]:
    """What is wrong with one key of a section."""
    if section == "policies":
        if not isinstance(value, str) or not value:
            yield f"the policy {name!r} must be a text; it is {shown(value)}", f"a SPEC is one of {FORMS}."
        elif not name or "=" in name:
            yield f"the name of the policy {name!r} is empty or contains '='", "give it another name."
        return
    key = keys.get(name)
    if key is None or key.section != section:
        yield misplaced(section, name, key, keys)
        return
    texts = key.values(value, folder)
    if texts is None:
        yield f"{name} {key.rule()}; it is {shown(value)}", f"write {key.example(value)}."
    elif key.action.choices is not None and not {*texts} <= {*map(str, key.action.choices)}:
        choices = ", ".join(toml_value(choice) for choice in key.action.choices)
        yield (
            f"{name} must be one of {choices}; it is {shown(value)}",
            f"{meant(value, key.action.choices)}write {key.example(value)}.",
        )
    elif name == FILE and not is_there(texts[0]):
        yield f"there is no file {value!r}", "paths are read from the folder of the question file."


def is_there(path: str) -> bool:
    """Whether a log is there, as far as that can be told before it is opened."""
    return exists(Path(path)) or bool(ADDRESS.match(path)) or any(sign in path for sign in PATTERN)


def misplaced(section: str, name: str, key: Key | None, keys: Mapping[str, Key]) -> tuple[str, str]:
    """What to say of a key that does not belong into a section."""
    if key is not None and key.section == "policies":
        return f"policies do not belong into [{section}]", 'write them below [policies]: new = "constant:call".'
    if key is not None and key.section == "":
        return f"{name!r} cannot stand in a question file", f"give it when the question is asked: podium run --{name}"
    if key is not None:
        return f"{name!r} does not belong into [{section}]", f"move it below [{key.section}]."
    own = sorted(key.name for key in keys.values() if key.section == section)
    near = meant(name, [key.name for key in keys.values() if key.section])
    return f"there is no key {name!r}", f"{near}[{section}] may have {', '.join(own)}."


@contextmanager
def told_of(asked: AskedQuestion) -> Iterator[None]:
    """Errors of a comparison whose hint should name the file."""
    try:
        yield
    except PodiumError as error:
        if error.message != NO_POLICIES:
            raise
        hint = f'name them below [policies] in {asked.file}: new = "constant:A"; or add pi_<name> columns to the log.'
        raise PodiumError(error.message, hint) from error


# --- writing -----------------------------------------------------------------------------------------------------


def question_text(
    sections: Mapping[str, Mapping[str, Any]], comments: Mapping[tuple[str, ...], str] | None = None
) -> str:
    """A question file: sections with their keys, and comments above (section,) and behind (section, key)."""
    said, lines = comments or {}, []
    for section in SECTIONS:
        if section not in sections and (section,) not in said:
            continue
        lines += ["", f"[{section}]"]
        for key, value in sections.get(section, {}).items():
            why = said.get((section, key), "")
            lines.append(f"{toml_key(key)} = {toml_value(value)}" + (f"  # {comment_text(why)}" if why else ""))
        lines += [f"# {comment_text(line)}" for line in said.get((section,), "").splitlines()]
    opening = [f"# {comment_text(line)}" for line in said.get((), "").splitlines()]
    return "\n".join([*opening, *lines[0 if opening else 1 :]]) + "\n"


def comment_text(text: str) -> str:
    """A text as a comment can hold it: without line ends and control characters."""
    return "".join(c if c.isprintable() or c == " " else "?" for c in text)
