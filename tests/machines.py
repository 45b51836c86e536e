"""The same questions asked of several machines: a process that answers as one of them, and how answers are compared.

A process simulates the logs, answers and prints everything as JSON. Another processor is imitated by environment
variables: `OPENBLAS_CORETYPE` picks the kernels of matrix products, `OPENBLAS_NUM_THREADS` their threads, and
`NPY_DISABLE_CPU_FEATURES` and `GLIBC_TUNABLES` the vector units that NumPy and the C library use.

    python tests/machines.py           # a table: how far every machine's answers are from those of the first
    python tests/machines.py --answer  # the answers of one machine, as JSON
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import math
import os
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from numerals import disagreements

# What OPENBLAS_CORETYPE accepts, and the features that a processor must have to run these kernels.
CORES = {
    "Prescott": ("SSE3",),
    "Nehalem": ("SSE42",),
    "Haswell": ("AVX2", "FMA3"),
    "Zen": ("AVX2", "FMA3"),
    "SkylakeX": ("AVX512_SKX",),
}
# What threadpoolctl calls them: one build has several names for the same kernels.
ARCHITECTURES = {"Prescott": ("Prescott", "Katmai", "Core2", "Generic"), "Zen": ("Zen", "Haswell")}
PLAIN_C = {"GLIBC_TUNABLES": "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX512F,-AVX2_Usable,-FMA_Usable,-FMA4_Usable"}
DIGITS = 1e-6  # numbers agree to six significant digits
NOISE = 1e-9  # numbers below this are rounding noise around 0: every simulated log has rewards of size 1


@dataclass(frozen=True)
class Machine:
    """One way to run the process: its name and environment, and what must then be true of the process."""

    name: str
    environment: Mapping[str, str]
    architectures: tuple[str, ...] = ()  # of which the process must report one, if any are named
    without: tuple[str, ...] = ()  # features that NumPy must not use


def machines() -> list[Machine]:
    """The machines that this processor can imitate; the first is the processor as it is."""
    from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__

    found = [Machine("as it is", {"OPENBLAS_NUM_THREADS": "2"})]
    found.append(Machine("one thread", {"OPENBLAS_NUM_THREADS": "1"}))
    for place, (core, needs) in enumerate(CORES.items()):
        if all(__cpu_features__.get(feature) for feature in needs):
            threads = str(1 + place % 2)
            environment = {"OPENBLAS_CORETYPE": core, "OPENBLAS_NUM_THREADS": threads}
            found.append(Machine(f"{core}, {threads}", environment, ARCHITECTURES.get(core, (core,))))
    vector = tuple(name for name in __cpu_dispatch__ if __cpu_features__.get(name))
    if vector:
        environment = {"NPY_DISABLE_CPU_FEATURES": " ".join(vector), "OPENBLAS_NUM_THREADS": "1", **PLAIN_C}
        found.append(Machine("no vector units", environment, without=vector))
    return found


def ask(machine: Machine) -> dict[str, Any]:
    """The answers of one machine, by a fresh process whose hashes of texts are its own."""
    given = ("OPENBLAS_CORETYPE", "NPY_DISABLE_CPU_FEATURES", *PLAIN_C)
    clean = {k: v for k, v in os.environ.items() if k not in given}
    seed = str(int.from_bytes(hashlib.sha256(machine.name.encode()).digest()[:4], "little"))
    done = subprocess.run(
        [sys.executable, __file__, "--answer"],
        env={**clean, **machine.environment, "PYTHONHASHSEED": seed, "COLUMNS": "100"},
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, f"{machine.name}: {done.stderr}"
    answer: dict[str, Any] = json.loads(done.stdout)
    return answer


def ask_all(asked: list[Machine], side_by_side: int = 2) -> list[dict[str, Any]]:
    """The answers of several machines, in their order."""
    with ThreadPoolExecutor(side_by_side) as pool:
        return list(pool.map(ask, asked))


def unlike(machine: Machine, reported: Mapping[str, Any]) -> list[str]:
    """Why a process is not the machine that it should be; nothing if it is."""
    found = []
    if machine.architectures and not set(reported["architectures"]) <= set(machine.architectures):
        found.append(f"{machine.name}: the matrix kernels are {reported['architectures']}")
    if machine.without and set(machine.without) & set(reported["features"]):
        found.append(f"{machine.name}: NumPy uses {reported['features']}")
    wanted = int(machine.environment.get("OPENBLAS_NUM_THREADS", 0))
    if wanted and any(threads > wanted for threads in reported["threads"]):
        found.append(f"{machine.name}: {reported['threads']} threads")
    return found


# --- answers compared ------------------------------------------------------------------------------------------


def leaves(value: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """Every number, text and truth value of a JSON value, with its place."""
    if isinstance(value, dict):
        for key, part in value.items():
            yield from leaves(part, f"{path}.{key}" if path else key)
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from leaves(part, f"{path}[{place}]")
    else:
        yield path, value


def distance(a: float, b: float) -> float:
    """How far two numbers are apart, as a share of the larger; 0 where both are noise around 0.

    >>> distance(2.0, 1.5), distance(1e-17, -3e-17), distance(0.5, float("inf"))
    (0.25, 0.0, inf)
    """
    if a == b or max(abs(a), abs(b)) <= NOISE:
        return 0.0
    gap = abs(a - b) / max(abs(a), abs(b))
    return gap if math.isfinite(gap) else math.inf


def numbers_apart(a: Any, b: Any) -> dict[str, float]:
    """The distance of every number of two answers that have the same shape, by its place."""
    left, right = dict(leaves(a)), dict(leaves(b))
    return {
        path: distance(x, right[path])
        for path, x in left.items()
        if isinstance(x, float) and isinstance(right.get(path), float)
    }


def contradictions(a: Any, b: Any) -> list[str]:
    """The places where two answers do not say the same.

    Fractions agree to six digits, texts word by word with their printed numbers, and all else is equal.
    """
    left, right = dict(leaves(a)), dict(leaves(b))
    found = [f"{path}: only one has it" for path in sorted(set(left) ^ set(right))]
    for path in [path for path in left if path in right]:
        x, y = left[path], right[path]
        if isinstance(x, float) and isinstance(y, float):
            if distance(x, y) > DIGITS:
                found.append(f"{path}: {x!r} and {y!r}")
        elif isinstance(x, str) and isinstance(y, str):
            found += [f"{path}: {difference}" for difference in disagreements(x, y)]
        elif x != y or type(x) is not type(y):
            found.append(f"{path}: {x!r} and {y!r}")
    return found


# --- the answers of one machine ----------------------------------------------------------------------------------

CASES: dict[str, Callable[[], Iterator[tuple[str, Any]]]] = {}


def case(function: Callable[[], Iterator[tuple[str, Any]]]) -> Callable[[], Iterator[tuple[str, Any]]]:
    """Register a function that yields results by name: objects with `to_dict` and `text`, or plain JSON."""
    CASES[function.__name__] = function
    return function


def simulated(name: str, rows: int, policies: int = 3, seed: int = 1) -> tuple[Any, dict[str, Any]]:
    """A log and its policies, from the families that the calibration uses."""
    import numpy as np

    from podium.experiments.calibration.families import FAMILIES
    from podium.experiments.calibration.long_logs import LOGS

    draw = (FAMILIES[name].draw if name in FAMILIES else LOGS[name])(np.random.default_rng(seed), rows, policies)
    return draw.log, draw.policies


@case
def demo() -> Iterator[tuple[str, Any]]:
    """The bundled example through the command, every question about it, and its report."""
    import podium
    from podium.command.cli import main

    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        yield "command", printed(main, ["demo", "--out", "."])
        yield "log", hashlib.sha256(Path("log.csv").read_bytes()).hexdigest()
        yield "report", Path("report.html").read_text(encoding="utf-8")
        for line in (
            "compare log.csv --joint --gate 'personalised > current - 0.02'",
            "plan log.csv --difference 0.05",
            "check log.csv",
            "states log.csv --baseline state",
            "evaluate log.csv --estimator all --baseline linear",
        ):
            yield line.split()[0], printed(main, shell_words(line))
        log = podium.read_log("log.csv")
    yield "compare in numbers", podium.compare(log, joint=True, bootstrap=200)
    yield "plan in numbers", podium.plan(log, difference=0.05)
    yield "check in numbers", podium.diagnose(log)
    yield "states in numbers", podium.compare_states(log, baseline="state")
    yield "spectrum in numbers", podium.spectrum(log)


@case
def longer() -> Iterator[tuple[str, Any]]:
    """600 rows with 5 features, in every procedure."""
    import podium

    log, policies = simulated("5 features", 600)
    for procedure in ("posterior", "gated", "paired t", "bootstrap t", "sign flip"):
        yield procedure, podium.compare(log, policies, verdicts=procedure, joint=procedure == "gated")
    yield "check", podium.diagnose(log, policies)


@case
def partly_known() -> Iterator[tuple[str, Any]]:
    """Policies known at the logged actions alone, so that the gated procedure judges."""
    import numpy as np

    import podium

    log, policies = simulated("reward-seeking, p of logged action only", 300)
    logged = {name: full[np.arange(len(log)), log.action_codes] for name, full in policies.items()}
    yield "seeking", podium.compare(log, logged)
    log, policies = simulated("fewer than 20 states", 300)
    logged = {name: full[np.arange(len(log)), log.action_codes] for name, full in policies.items()}
    yield "few states", podium.compare(log, logged)
    yield "plan", podium.plan(log, logged, difference=0.1)
    yield "evaluate", podium.evaluate(log, logged, "all")


@case
def dependent() -> Iterator[tuple[str, Any]]:
    """Rows that depend on each other."""
    import podium

    log, policies = simulated("units", 200)
    yield "compare", podium.compare(log, policies)
    yield "plan", podium.plan(log, policies, difference=0.1)
    yield "bootstrap", podium.compare(log, policies, "DRE", "linear", verdicts="bootstrap t", bootstrap=200)


@case
def small() -> Iterator[tuple[str, Any]]:
    """A hundred rows each: ties, text states, deterministic policies, loggers that are uniform or that mislead."""
    import podium

    for name in (
        "exact ties",
        "uniform logger",
        "state-confounded, text states",
        "no propensities",
        "classification: iris",
        "example 1.1, numeric actions",
        "2 actions",
    ):
        log, policies = simulated(name, 100)
        yield name, podium.compare(log, policies)


@case
def constant() -> Iterator[tuple[str, Any]]:
    """What is constant but for rounding."""
    from samples import degenerate

    import podium

    log, policies = degenerate()
    for procedure in ("posterior", "gated"):
        yield procedure, podium.compare(log, policies, verdicts=procedure)


@case
def continuous() -> Iterator[tuple[str, Any]]:
    """Actions that are numbers."""
    import numpy as np

    from podium.continuous import ContinuousLog

    rng = np.random.default_rng(2)
    states, actions = rng.normal(size=200), rng.uniform(size=200)
    rewards = np.exp(-((actions - 0.6) ** 2)) + 0.1 * states + 0.1 * rng.normal(size=200)
    log = ContinuousLog(states, actions, rewards, densities=np.ones(200))
    policies = {"0.2": 0.2, "0.6": 0.6, "by state": 1 / (1 + np.exp(-states))}
    yield "compare", log.compare(policies, baseline="linear")
    yield "evaluate", log.evaluate(policies, baseline="linear")


@case
def estimated() -> Iterator[tuple[str, Any]]:
    """Propensities learned from the log."""
    import podium

    log, policies = simulated("no propensities", 300)
    for model in ("logistic", "frequencies"):
        result = podium.compare(log, policies, behavior=f"estimate:{model}")
        yield model, result
        yield f"{model} in figures", result.log.estimated.to_dict()


@case
def large() -> Iterator[tuple[str, Any]]:
    """More than 20,000 rows, read in passes."""
    import podium

    log, policies = simulated("few states", 20_500)
    yield "compare", podium.compare(log, policies)


def printed(main: Callable[[list[str]], int], arguments: list[str]) -> dict[str, Any]:
    """What a command prints, and its exit code."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        code = main(arguments)
    return {"exit code": code, "output": output.getvalue()}


def shell_words(line: str) -> list[str]:
    import shlex

    return shlex.split(line)


def answers() -> dict[str, Any]:
    """Everything that this process answers, and what it knows of the machine that it runs on."""
    found: dict[str, Any] = {}
    for name, function in CASES.items():
        for part, result in function():
            value = {"json": result.to_dict(), "text": result.text()} if hasattr(result, "to_dict") else result
            found[f"{name}: {part}"] = value
    return {"machine": this_machine(), "answers": found}


def this_machine() -> dict[str, Any]:
    """The kernels and threads of every BLAS that is loaded, NumPy's vector units, and bits that depend on them."""
    import numpy as np
    from numpy._core._multiarray_umath import __cpu_features__
    from threadpoolctl import threadpool_info

    blas = [library for library in threadpool_info() if library["user_api"] == "blas"]
    matrix = np.random.default_rng(0).standard_normal((301, 301))
    exponentials = np.array([math.exp(x) for x in matrix.ravel().tolist()])
    return {
        "architectures": sorted({library.get("architecture", "") for library in blas}),
        "threads": [library["num_threads"] for library in blas],
        "features": sorted(name for name, on in __cpu_features__.items() if on),
        "bits": [hashlib.sha256(x.tobytes()).hexdigest() for x in (matrix @ matrix.T, np.exp(matrix), exponentials)],
    }


def main() -> None:
    if "--answer" in sys.argv:
        json.dump(answers(), sys.stdout)
        return
    asked = machines()
    told = ask_all(asked)
    for machine, answer in zip(asked[1:], told[1:], strict=True):
        apart = numbers_apart(told[0]["answers"], answer["answers"])
        wrong = contradictions(told[0]["answers"], answer["answers"])
        worst = max(apart, key=apart.__getitem__)
        print(f"{machine.name:18} {len(wrong):5} contradictions; farthest apart {apart[worst]:.1e} at {worst}")
        for line in wrong[: int(os.environ.get("SHOWN", "5"))]:
            print("    " + line.replace("\n", "\n    ")[:300])


if __name__ == "__main__":
    main()
