"""Files that are damaged or odd are read or refused, on every engine, and never crash.

Each example is a file of `mutations.py`. The outcome is a log, or a `PodiumError` with a message and a hint. Any other
exception fails the test, and so does any warning. The engines agree on whether a file can be read and on its rows,
apart from the differences in `DIFFERENCES`.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from mutations import CHOICES, ENDINGS, POLICY, TABLE, odd_files

import podium
from podium.data.errors import PodiumError

Outcome = podium.Log | PodiumError

# What one engine reads and the other refuses: endings, what memory says, what DuckDB says (nothing: it is read).
DIFFERENCES = [
    # In memory, a missing state is a value of its own, and values are read as people write them.
    ("csv jsonl parquet", "", r"column '.*' must not be missing|mixes (number and text|text and number)"),
    ("csv jsonl parquet", "", r"reads values as they are"),
    # In memory, texts in UTF-16 and Latin-1 are read too.
    ("csv", "", r"log\.csv is (UTF-16, not UTF-8|not UTF-8: |not a text file)"),
    # In memory, a header that is repeated, and labels below it, are skipped.
    ("csv", "", r"column '.*' must (be a number|be a finite number|lie in).*; row \d+ \(line [2-4]\) holds '"),
    # In memory, columns without a name, and those whose name is there twice, get one of their own.
    ("csv", "", r"log\.csv: column \d+ has no name|log\.csv: the column '.*' appears twice"),
    # DuckDB ignores empty cells after the last column.
    ("csv", r"log\.csv: row \d+ has \d+ cells; the header has \d+ ", ""),
    # Python reads no cell of more than 131,072 characters.
    ("csv", r"field larger than field limit", ""),
    # DuckDB takes the first end of a line, even one inside quotes, for that of all lines.
    ("csv", "", r"log\.csv holds [\d,]+ rows?, and DuckDB reads "),
    # DuckDB reads neither lines that end in different ways, nor lines of spaces between the rows.
    ("csv", "", r"cannot be read: Invalid Input Error: (The CSV Parser state machine|CSV Error on Line)"),
    ("csv", "", r"line \d+ does not have as many cells as the header"),
    # DuckDB keeps no whole numbers of more than 64 bits, and podium lets it round none.
    ("csv jsonl", "", r"the column '.*' holds whole numbers of more than 64 bits"),
    ("csv jsonl", "", r"the column '.*' mixes fractions with whole numbers that floats cannot tell apart"),
    # DuckDB does not tell upper and lower case in names apart, needs some names itself, and podium two more.
    ("csv jsonl parquet", "", r"(columns|names) '.*' and '.*' apart"),
    ("csv jsonl parquet", "", r"DuckDB needs the name '.*' for itself"),
    ("csv jsonl parquet", "", r"a column may not be called 'podium (row|latest)'"),
    # In DuckDB a column of JSON that mixes kinds of values becomes a column of texts; lists and objects may stay.
    ("jsonl", r"column '.*' mixes .* and ", ""),
    ("jsonl", "", r"the column '.*' mixes several kinds of values"),
    ("jsonl", r"column '.*' must not be missing", ""),
    ("jsonl", "", r"column '.*' must (be a number|be finite|hold numbers or texts|be a finite number)"),
    ("jsonl", "", r"the log has no column '.*' for the "),
    # DuckDB reads no text with half a character, and no value inside more than 128 others.
    ("jsonl", "", r"no low surrogate in string|maximum recursion depth|Malformed JSON"),
    # DuckDB does not look at the checksums of compressed pages.
    ("parquet", r"is not a whole Parquet file", ""),
    # Arrow reads more of a damaged file than DuckDB does.
    ("parquet", "", r"log\.parquet cannot be read: "),
    # DuckDB gives a column without a name one of its own.
    ("parquet", r"column \d+ has no name|the column '.*' appears twice", ""),
]
# Numbers and spans of time that the engines write in different ways.
SPANS = re.compile(r"(\d+) microseconds|(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)\.0+")


def repeat(examples: int) -> settings:
    """So many examples, the same ones in every run."""
    return settings(
        max_examples=examples,
        deadline=None,
        derandomize=True,
        database=None,
        suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow, HealthCheck.data_too_large],
    )


def read(path: Path, engine: str) -> Outcome:
    """The log of a file, as every question reads a small one; or the refusal."""
    try:
        log = podium.scan_log(path, engine=engine)
        if isinstance(log, podium.Log):
            return log
        try:
            return log.collect()
        finally:
            log.engine.close()
    except PodiumError as error:
        return checked(error)


def checked(error: PodiumError) -> PodiumError:
    """A refusal that says what is wrong and what to do."""
    assert error.message.strip()
    assert error.hint.strip()
    assert "Traceback" not in str(error)
    return error


def rows(log: podium.Log) -> dict[str, list[Any]]:
    """What a log was read as, in the roles that its columns play, with numbers as floats."""
    roles = {"action": log.actions, "reward": log.rewards, "propensity": log.propensities, "time": log.times}
    columns = {**log.state_columns, **roles, "the action space": log.action_space}
    return {name: [same_number(x) for x in column] for name, column in columns.items() if column is not None}


def same_number(value: Any) -> Any:
    if isinstance(value, float) and math.isnan(value):
        return None
    if isinstance(value, str):
        span = SPANS.fullmatch(value)
        return value if span is None else float(span[1]) if span[1] else span[2]
    return float(value) if isinstance(value, int | Decimal | Fraction) and not isinstance(value, bool) else value


def explained(ending: str, memory: Outcome, duckdb: Outcome) -> bool:
    """Whether it is known that one engine reads such a file and the other does not."""
    said = ["" if isinstance(x, podium.Log) else x.message for x in (memory, duckdb)]
    return any(
        ending in known.split()
        and all(bool(text) == bool(rule) and re.search(rule, text) for rule, text in zip(rules, said, strict=True))
        for known, *rules in DIFFERENCES
    )


def check_log(ending: str, content: bytes, folder: Path) -> None:
    path = folder / f"log.{ending}"
    path.write_bytes(content)
    memory, duckdb = read(path, "memory"), read(path, "duckdb")
    assert path.read_bytes() == content
    if isinstance(memory, podium.Log) and isinstance(duckdb, podium.Log):
        assert rows(duckdb) == rows(memory)
    elif isinstance(memory, podium.Log) or isinstance(duckdb, podium.Log):
        assert explained(ending, memory, duckdb), f"memory: {memory}\n\nduckdb: {duckdb}"


def check_policy(ending: str, content: bytes, folder: Path) -> None:
    """A policy file is read and compared, or refused."""
    path = folder / f"policy.{ending}"
    path.write_bytes(content)
    log = podium.Log.from_columns(TABLE)
    try:
        result = podium.compare(log, {"file": str(path), "now": "pi_now"})
        assert set(result.ranking) == {"file", "now"}
    except PodiumError as error:
        checked(error)
    assert path.read_bytes() == content


@pytest.mark.parametrize("ending", ENDINGS)
@repeat(80)
@given(data=st.data())
def test_odd_logs_are_read_or_refused(ending: str, data: st.DataObject, tmp_path: Path) -> None:
    check_log(ending, data.draw(ENDINGS[ending](TABLE)), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("ending", ENDINGS)
@repeat(800)
@given(data=st.data())
def test_many_odd_logs_are_read_or_refused(ending: str, data: st.DataObject, tmp_path: Path) -> None:
    check_log(ending, data.draw(ENDINGS[ending](TABLE)), tmp_path)


@pytest.mark.parametrize("table", [POLICY, CHOICES], ids=["probabilities", "choices"])
@repeat(60)
@given(data=st.data())
def test_odd_policy_files_are_compared_or_refused(
    table: dict[str, list[Any]], data: st.DataObject, tmp_path: Path
) -> None:
    check_policy(*data.draw(odd_files(table)), tmp_path)


@pytest.mark.slow
@pytest.mark.parametrize("table", [POLICY, CHOICES], ids=["probabilities", "choices"])
@repeat(500)
@given(data=st.data())
def test_many_odd_policy_files_are_compared_or_refused(
    table: dict[str, list[Any]], data: st.DataObject, tmp_path: Path
) -> None:
    check_policy(*data.draw(odd_files(table)), tmp_path)
