"""Shared by all tests: a skipped test is a failed test, and every run says which tests it left out."""

from __future__ import annotations

import os
import re
import sys
from collections import Counter
from collections.abc import Generator
from typing import Any

import pytest

TARGET = re.compile(r"(?P<marker>\w+): .*\((?P<command>make \S+)\)")
LEFT_OUT = pytest.StashKey[Counter[str]]()

if "PYTEST_XDIST_WORKER" in os.environ:
    # The workers share the cores, so each of them, and every process that it starts, computes on one.
    for name in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS"):
        os.environ.setdefault(name, "1")


# --- nothing is skipped ------------------------------------------------------------------------------------------


def _fail_if_skipped(report: pytest.TestReport | pytest.CollectReport) -> None:
    expected_failure = hasattr(report, "wasxfail")
    if report.skipped and not expected_failure:
        reason = report.longrepr[2] if isinstance(report.longrepr, tuple) else report.longrepr
        report.outcome = "failed"
        report.longrepr = f"nothing may be skipped: {reason}"


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_makereport() -> Generator[None, pytest.TestReport, pytest.TestReport]:
    report = yield
    _fail_if_skipped(report)
    return report


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_make_collect_report() -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    report = yield
    _fail_if_skipped(report)
    return report


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out the tests of other systems before anything is skipped or run."""
    markers = [item.get_closest_marker("platforms") for item in items]
    fits = [marker is None or sys.platform in marker.args for marker in markers]
    config.hook.pytest_deselected(items=[item for item, here in zip(items, fits, strict=True) if not here])
    items[:] = [item for item, here in zip(items, fits, strict=True) if here]


# --- what was not run --------------------------------------------------------------------------------------------


def pytest_configure(config: pytest.Config) -> None:
    config.stash[LEFT_OUT] = Counter()
    config.pluginmanager.register(_FromWorkers(config))


def commands(config: pytest.Config) -> dict[str, str]:
    """The make target of each marker, as pyproject.toml describes it."""
    return {m["marker"]: m["command"] for m in map(TARGET.fullmatch, config.getini("markers")) if m}


def pytest_deselected(items: list[pytest.Item]) -> None:
    for item in items:
        markers = [name for name in commands(item.config) if item.get_closest_marker(name)]
        item.config.stash[LEFT_OUT].update(markers[:1])


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["left_out"] = dict(session.config.stash[LEFT_OUT])


class _FromWorkers:
    """Where workers run the tests, each of them collects the same ones and sends its count to the terminal."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        self.config.stash[LEFT_OUT] |= Counter(getattr(node, "workeroutput", {}).get("left_out", {}))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter, config: pytest.Config) -> None:
    left_out = config.stash[LEFT_OUT]
    if left_out:
        terminalreporter.section("not run")
        for marker, command in commands(config).items():
            if left_out[marker]:
                terminalreporter.line(f"{left_out[marker]:5} {marker + ' tests':15} run: {command}")
        terminalreporter.line("All of them, and the tests with the lowest versions: make test-all")
