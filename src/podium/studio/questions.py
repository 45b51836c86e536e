"""What a person asks in the studio, and the same question as a command and as Python code."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from podium.data.nested import ELEMENT, lists_among
from podium.data.roles import behavior_prefixes

ROLES = {
    "state": "State: what was known before acting",
    "action": "Action: what was done",
    "dose": "Action that is a number: a dose, a price",
    "reward": "Reward: what came of it",
    "propensity": "Propensity: how likely that action was",
    "time": "Time: when it happened",
    "unit": "Unit: who or what it happened to",
    "policy": "Policy: what a candidate would do",
    "ignore": "Leave out",
}
SINGLE = ("action", "reward", "propensity", "time", "unit")  # one column each
ALWAYS = ("propensity", "time")  # podium takes a column of this name for this role unless it is state
DENSITY = "density"  # podium takes a column of this name for the propensity of actions that are numbers
ESTIMATORS = {
    "": "podium's choice",
    "posterior": "posterior",
    "gated": "gated",
    "LDE": "LDE",
    "DRE": "DRE",
    "IPS": "IPS",
    "DiM": "DiM",
    "SNIPS": "SNIPS",
    "SNDR": "SNDR",
    "cIPS:10": "IPS, weights clipped at 10",
    "SwitchDR:10": "Switch-DR at 10",
    "DRos:100": "DR, optimistic shrinkage",
    "DirectModel": "the reward model alone",
}
BEHAVIORS = {  # of a log without propensities
    "": "do without propensities",
    "estimate": "estimate them from the log",
}
BASELINES = {
    "mean": "the mean reward",
    "linear": "a linear model",
    "state": "neighbouring states",
    "number": "a number",
}


@dataclass(frozen=True)
class Candidate:
    """One policy: a column of the log, the same action always, uniform, what was logged, or a file."""

    name: str
    kind: str  # column, constant, uniform, logged, file
    value: str = ""  # the column's header, the action, or what the file is called
    path: str = ""  # where the studio keeps the file

    def spec(self, stored: bool = False) -> str:
        """The policy as a SPEC string; ./ keeps a file's name from meaning anything else."""
        if self.kind == "file":
            return self.path if stored else f"./{self.value}"
        return f"{self.kind}:{self.value}" if self.kind in ("column", "constant") else self.kind


@dataclass(frozen=True)
class Question:
    """A log, the roles of its columns, the policies, and how to compare them."""

    shown: str  # what the file is called
    path: str = ""  # where the studio keeps it
    headers: tuple[str, ...] = ()  # every column of the file, in order
    roles: Mapping[str, str] = field(default_factory=dict)
    texts: tuple[str, ...] = ()  # numbers to read as names
    prose: tuple[str, ...] = ()  # columns of long texts, ids and dates, which are no state unless they are named
    success: str = ""  # the reward that counts as 1
    drop_missing: bool = False
    date_format: str = ""
    candidates: tuple[Candidate, ...] = ()
    behavior: str = ""  # how propensities that the log lacks are had
    estimator: str = ""
    baseline: str = "mean"  # a name, or a number as text
    level: float = 0.95
    lower_is_better: bool = False
    joint: bool = False

    def column(self, role: str) -> str | None:
        """The column that plays a role of which there is one."""
        return next((h for h in self.headers if played(self.roles.get(h)) == role), None)

    @property
    def continuous(self) -> bool:
        """Whether the actions are numbers."""
        return "dose" in self.roles.values()

    def role_of(self, header: str) -> str | None:
        """The role of a column, or of the list that it is a part of."""
        match = ELEMENT.fullmatch(header)
        return self.roles.get(header, self.roles.get(match["list"]) if match else None)

    def reading(self) -> dict[str, Any]:
        """The arguments of `read_log` that differ from what it would do by itself."""
        found: dict[str, Any] = {}
        states = [h for h in self.headers if self.role_of(h) == "state"]
        named = {role: self.column(role) for role in SINGLE}
        if states != self.left_over(named):
            lists = {part: name for name, parts in lists_among(states).items() for part in parts if name in self.roles}
            found["state"] = list(dict.fromkeys(lists.get(h, h) for h in states))
        found |= {role: h for role, h in named.items() if h is not None and (h != role or role == "unit")}
        if self.texts:
            found["text"] = list(self.texts)
        if not self.continuous:
            found |= {name: getattr(self, name) for name in ("success", "drop_missing", "date_format")}
        return {name: value for name, value in found.items() if value or name == "state"}

    def left_over(self, named: Mapping[str, str | None]) -> list[str]:
        """The state columns that podium would pick by itself."""
        taken = set(filter(None, named.values()))
        taken |= {role for role in ALWAYS if named[role] is None} | set(self.prose)
        if self.continuous and named["propensity"] is None:
            taken.add(DENSITY)
        others = ("pi_", *behavior_prefixes(named["propensity"]))
        return [h for h in self.headers if h not in taken and not h.startswith(others)]

    def deciding(self) -> dict[str, Any]:
        """The arguments of `compare` that differ from its defaults."""
        found: dict[str, Any] = {}
        if self.behavior:
            found["behavior"] = self.behavior
        if self.estimator:
            found["estimator"] = self.estimator
        if self.baseline != "mean":
            found["baseline"] = self.baseline if self.baseline in BASELINES else float(self.baseline)
        if self.level != 0.95:
            found["level"] = self.level
        if self.lower_is_better:
            found["lower_is_better"] = True
        if self.joint:
            found["joint"] = True
        return found

    def policies(self, stored: bool = False) -> dict[str, str]:
        return {c.name: c.spec(stored) for c in self.candidates}

    def task(self) -> dict[str, Any]:
        """The question as the worker takes it."""
        return {
            "path": self.path,
            "shown": self.shown,
            "reading": self.reading(),
            "policies": self.policies(stored=True),
            "files": {c.path: c.value for c in self.candidates if c.path},
            "deciding": self.deciding(),
            "command": self.command(),
            "continuous": self.continuous,
        }

    def command(self) -> str:
        """The command that gives the same numbers.

        >>> question = Question("my log.csv", candidates=(Candidate("now", "logged"), Candidate("a", "uniform")))
        >>> print(question.command())
        podium compare './my log.csv' \\
          --policy now=logged \\
          --policy a=uniform
        """
        parts = [f"podium compare {shlex.quote(f'./{self.shown}')}"]
        parts += [option("policy", f"{name}={spec}") for name, spec in self.policies().items()]
        parts += ["--continuous"] if self.continuous else []
        for name, value in self.reading().items():
            values = value if isinstance(value, list) else [value]
            parts += [flag(name) if v is True else option(name, v) for v in values]
        for name, value in self.deciding().items():
            parts.append(
                flag(name) if value is True else option(name, value if isinstance(value, str) else repr(value))
            )
        return " \\\n  ".join(parts)

    def code(self) -> str:
        """The Python that gives the same numbers.

        >>> print(Question("log.csv", candidates=(Candidate("now", "logged"), Candidate("a", "uniform"))).code())
        import podium
        <BLANKLINE>
        log = podium.read_log("log.csv")
        policies = {
            "now": "logged",
            "a": "uniform",
        }
        result = podium.compare(log, policies)
        print(result)
        result.report("report.html")
        <BLANKLINE>
        """
        module = "podium.continuous" if self.continuous else "podium"
        lines = [f"    {literal(name)}: {literal(spec)}," for name, spec in self.policies().items()]
        return "\n".join(
            [
                "import podium\n",
                f"log = {module}.read_log({arguments(literal(self.shown), self.reading())})",
                "policies = {",
                *lines,
                "}",
                f"result = {module}.compare({arguments('log, policies', self.deciding())})",
                "print(result)",
                'result.report("report.html")\n',
            ]
        )


def played(role: str | None) -> str | None:
    """The role that counts: a dose is an action."""
    return "action" if role == "dose" else role


def option(name: str, value: str) -> str:
    """An option of the command, safe in a shell; a value that begins with - is tied to its option."""
    return f"{flag(name)}={shlex.quote(value)}" if value.startswith("-") else f"{flag(name)} {shlex.quote(value)}"


def flag(name: str) -> str:
    return "--" + name.replace("_", "-")


def literal(value: Any) -> str:
    """A value as Python code; texts in double quotes where they need no escape."""
    if isinstance(value, str) and value.isprintable() and not set('"\\') & set(value):
        return f'"{value}"'
    if isinstance(value, list):
        return "[" + ", ".join(map(literal, value)) + "]"
    return repr(value)


def arguments(first: str, rest: Mapping[str, Any]) -> str:
    return ", ".join([first, *(f"{name}={literal(value)}" for name, value in rest.items())])


def with_roles(question: Question, roles: Mapping[str, str], texts: Sequence[str]) -> Question:
    """The question with other roles; policies whose column is one no more go."""
    kept = tuple(c for c in question.candidates if c.kind != "column" or roles.get(c.value) == "policy")
    if question.continuous != ("dose" in roles.values()):  # other policies choose other actions
        kept = tuple(c for c in kept if c.kind == "column")
    have = {c.value for c in kept if c.kind == "column"}
    names = {c.name for c in kept}
    for header, role in roles.items():
        if role == "policy" and header not in have:
            name = free_name(policy_name(header), names)
            names.add(name)
            kept += (Candidate(name, "column", header),)
    return replace(question, roles=dict(roles), texts=tuple(texts), candidates=kept)


def with_behavior(question: Question, behavior: str) -> Question:
    """The question with other propensities; where there are none, what was logged is no candidate."""
    kept = question.candidates if behavior else tuple(c for c in question.candidates if c.kind != "logged")
    return replace(question, behavior=behavior, candidates=kept)


def policy_name(header: str) -> str:
    """What a policy column is called: pi_new -> new."""
    return header.removeprefix("pi_").replace("=", " ").strip() or "policy"


def free_name(name: str, taken: set[str]) -> str:
    """The name, with a number where it is taken.

    >>> free_name("new", {"new", "new 2"})
    'new 3'
    """
    found, number = name, 1
    while found in taken:
        number += 1
        found = f"{name} {number}"
    return found


def few_policies(roles: Mapping[str, str], most: int) -> dict[str, str]:
    """Guessed roles in which the first policies alone are policies; the columns of further ones are left out."""
    policies = [header for header, role in roles.items() if role == "policy"]
    return {**roles, **dict.fromkeys(policies[most:], "ignore")}


def role_problems(question: Question, roles: Mapping[str, str], most: int) -> list[str]:
    """What is wrong with a choice of roles, before any data is read; `most` policies can be compared."""
    problems = []
    policies = sum(role == "policy" for role in roles.values())
    if policies > most:
        problems.append(f"The studio compares at most {most} policies; you chose {policies:,}. Leave some columns out.")
    for role in SINGLE:
        found = [h for h in question.headers if played(roles.get(h)) == role]
        if len(found) > 1:
            problems.append(f"Only one column can be the {role}; you chose {', '.join(found[:4])}.")
        if not found and role in ("action", "reward"):
            problems.append(f"Choose the column that holds the {role}.")
    if not any(role == "state" for role in roles.values()):
        problems.append("Choose at least one state column: what was known before acting.")
    problems += [
        f"A column called {name} is always read as the {name}, or as state; rename it in the file to leave it out."
        for name in ALWAYS
        if name in question.headers and roles.get(name) not in (name, "state")
    ]
    unread = DENSITY in question.headers and roles.get(DENSITY) not in ("state", "dose", *SINGLE)
    if unread and "dose" in roles.values() and "propensity" not in roles.values():
        problems.append(
            "A column called density is always read as the propensity of such actions, or as state; rename it in the "
            "file to leave it out."
        )
    return problems
