"""Damaged and odd files as hypothesis strategies: CSV, JSON lines and Parquet, of logs and of policies.

A strategy starts from a valid file and changes one to four things, from the meaning (a cell, a header, a type of a
column) down to single bytes. Examples are small, so that one failure is easy to read.
"""

from __future__ import annotations

import datetime as dt
import io
import json
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
import pyarrow as pa
from hypothesis import strategies as st
from pyarrow import parquet

ROWS = 6
TABLE: dict[str, list[Any]] = {
    "age": [30, 30, 40, 50, 50, 60],
    "city": ["oslo", "rome", "oslo", "rome", "oslo", "rome"],
    "action": ["sms", "call", "sms", "call", "sms", "call"],
    "reward": [1.0, 0.0, 0.5, 0.0, 0.75, 0.25],
    "propensity": [0.5, 0.5, 0.25, 0.25, 0.75, 0.5],
    "time": [1, 2, 3, 4, 5, 6],
    "pi_now": [0.5] * ROWS,
    "pi_new": [0.2, 0.8, 0.3, 0.6, 0.4, 0.5],
}
POLICY: dict[str, list[Any]] = {
    "age": [30, 30, 40, 50, 50, 60],
    "city": ["oslo", "rome", "oslo", "rome", "oslo", "rome"],
    "sms": [0.2, 0.8, 0.3, 0.6, 0.4, 0.5],
    "call": [0.8, 0.2, 0.7, 0.4, 0.6, 0.5],
}
CHOICES = {name: TABLE[name] for name in ("age", "city", "action")}  # a policy as the action that it chooses

CELLS = (
    "", " ", "  7", "7 ", "\t7", "nan", "NaN", "inf", "-Infinity", "1e400", "1e308", "-1e308", "5e-324", "9" * 400,
    "9" * 30, str(2**63), str(-(2**63)), str(2**63 - 1), "0x10", "1_000", "١٢", "1,5", '"', '""', "'", "=1+1", "a\0b",
    "\ufeff", "ÿ", "🙂", "e\u0301", "True", "false", "null", "None", "NA", "007", "+007", "-0", "-0.0", "0", "1", "-1",
    "2", "1.0000001", "0.50000000000000001", "x" * 70_000, "x" * 140_000, "\u2028", "\x85", "\x1c", "\x0b", "\u00a0",
    "+5", "-", ".", "5.", ".5", "1e", "1e5", "2024-01-01", "2024-01-01T10:00:00Z", "12:00", "a;b", "a\tb", "a\nb",
    "a\rb", "a\r\nb", "\\", "\\N", "#", "# age", "sms", "call", "SMS", "sms ",
)  # fmt: skip
HEADERS = (
    "", " ", "action", "Action", "ACTION", "reward", "reward ", "time", "unit", "state", "pi_", "pi_:", "pi_new",
    "PI_NEW", "pi_new:sms", "pi_new:call", "pi_x:a:b", "pi_x", "propensity:", "propensity:sms", "propensity:call",
    "x\ny", '"', "'", "a;b", "podium row", "podium latest", "file_row_number", "filename", "rowid", "file_index",
    "SELECT", "state[0]", "0", "a" * 5000, "é", "e\u0301", "\ufeffage", "\u200b", "a\0b", "*", "age:x", "a.b", "%",
    "{}", "\\",
)  # fmt: skip
JSON_VALUES = (
    None, True, False, 0, 1, -1, 2**63, 10**400, 1e308, 1e-320, 0.5, "", " ", "nan", "sms", "7", "a\0b", "\ud800", [],
    [[]], [1, 2], [1, "x"], {}, {"a": {}}, {"sms": 0.5, "call": 0.5}, {"a": 1, "b": [1, {"c": 2}]}, "x" * 140_000,
    "2024-01-01", "12:00:00", "\u2028", "6f1c2d0e-7a37-4f5c-9d0b-1f2e3d4c5b6a",
)  # fmt: skip
RAW_JSON = ("NaN", "-Infinity", "1e400", "01", "+1", ".5", "'x'", "undefined", "1_000", "9" * 5000, "[" * 3000, "\x00")
ENCODINGS = ("utf-8-sig", "utf-16", "utf-16-le", "utf-32", "latin-1", "cp037")
NEWLINES = ("\n", "\r\n", "\r", "\n\n", "\n \n", "\x0b", "\x85", "\u2028", "")
BYTES = (
    b"\0",
    b"\xff",
    b"\xef\xbb\xbf",
    b'"',
    b"\n",
    b"\r",
    b",",
    b";",
    b"\t",
    b"\\",
    b"\x1a",
    b"PAR1",
    b"\xc3",
    b"{",
    b"}",
)
PLACES = st.integers(0, 1 << 30)


def pick(draw: st.DrawFn, most: int) -> int:
    """A place below `most`."""
    return draw(PLACES) % max(1, most)


# --- bytes -----------------------------------------------------------------------------------------------------------


@st.composite
def damaged(draw: st.DrawFn, content: bytes, least: int = 0, most: int = 3) -> bytes:
    """The bytes with a few of them changed, added, removed, repeated or moved."""
    for _ in range(draw(st.integers(least, most))):
        at, kind = pick(draw, len(content) + 1), draw(st.integers(0, 6))
        until = at + draw(st.sampled_from([1, 2, 8, 64]))
        if kind == 0 and content:
            at = at % len(content)
            content = content[:at] + bytes([content[at] ^ draw(st.integers(1, 255))]) + content[at + 1 :]
        elif kind == 1:
            content = content[:at] + draw(st.sampled_from(BYTES)) + content[at:]
        elif kind == 2:
            content = content[:at] + content[until:]
        elif kind == 3:
            content = content[:at]
        elif kind == 4:
            content = content[:until] + content[at:]
        elif kind == 5:
            content = content[at:until] + content[:at] + content[until:]
        else:
            content = content[:at] + b"\0" * (until - at) + content[until:]
    return content


# --- CSV -------------------------------------------------------------------------------------------------------------


def written(cell: str) -> str:
    """A cell as CSV writes it, in quotes where it needs them."""
    special = any(c in cell for c in ',;\t"\n\r')
    return '"' + cell.replace('"', '""') + '"' if special else cell


@st.composite
def odd_csv(draw: st.DrawFn, table: dict[str, list[Any]]) -> bytes:
    """A CSV file with a few odd cells, headers, rows, line ends or bytes."""
    rows = [
        [written(name) for name in table],
        *([written(str(x)) for x in row] for row in zip(*table.values(), strict=True)),
    ]
    newline, separator, encoding, end = "\n", ",", "utf-8", "\n"
    for _ in range(draw(st.integers(0, 3))):
        kind = draw(st.integers(0, 12))
        i, j = pick(draw, len(rows)), draw(st.integers(0, len(table) - 1))
        row = rows[i]
        if kind <= 2 and row:
            cell = draw(st.sampled_from(CELLS))
            row[j % len(row)] = cell if draw(st.booleans()) else written(cell)
        elif kind == 3 and rows[0]:
            header = draw(st.sampled_from(HEADERS))
            rows[0][j % len(rows[0])] = header if draw(st.booleans()) else written(header)
        elif kind == 4:
            rows.insert(pick(draw, len(rows) + 1), list(rows[i]))  # a row twice, perhaps the header
        elif kind == 5:
            rows[i] = draw(st.permutations(row))
        elif kind == 6:
            rows[i] = row[:j] if draw(st.booleans()) else [*row, draw(st.sampled_from(CELLS))]
        elif kind == 7:
            rows = rows[:i] or rows
        elif kind == 8:
            newline = draw(st.sampled_from(NEWLINES))
        elif kind == 9:
            separator = draw(st.sampled_from([";", "\t", "|", " ", ",,"]))
        elif kind == 10:
            encoding = draw(st.sampled_from(ENCODINGS))
        elif kind == 11:
            end = draw(st.sampled_from(["", "\n\n\n", "\r\n", "  ", '"', "\0", "\x1a"]))
        else:
            cell = draw(st.sampled_from(CELLS))
            rows = [rows[0], *([*r[:j], cell, *r[j + 1 :]] for r in rows[1:])]  # a whole column
    lines = [separator.join(row) for row in rows]
    mixed = draw(st.booleans()) and newline != "\n"
    text = "".join(line + (newline if mixed or k % 2 else "\n") for k, line in enumerate(lines[:-1]))
    content = (text + (lines[-1] if lines else "") + end).encode(encoding, errors="replace")
    return draw(damaged(content, 0, 1)) if draw(st.booleans()) else content


# --- JSON lines ------------------------------------------------------------------------------------------------------


@st.composite
def odd_json(draw: st.DrawFn, table: dict[str, list[Any]]) -> bytes:
    """A file of JSON lines with a few odd values, names, lines or bytes."""
    records: list[dict[str, Any]] = [dict(zip(table, row, strict=True)) for row in zip(*table.values(), strict=True)]
    raw: dict[int, str] = {}  # lines that no JSON writer makes
    newline = "\n"
    for _ in range(draw(st.integers(0, 3))):
        i, kind = pick(draw, len(records)), draw(st.integers(0, 7))
        record = records[i]
        name = list(table)[draw(st.integers(0, len(table) - 1))]
        if kind <= 1:
            record[name] = draw(st.sampled_from(JSON_VALUES))
        elif kind == 2:
            record.pop(name, None)
        elif kind == 3:
            record[draw(st.sampled_from(HEADERS))] = record.pop(name, 1)
        elif kind == 4:
            value = draw(st.sampled_from(JSON_VALUES))
            for other in records:
                other[name] = value
        elif kind == 5:
            pair = f"{json.dumps(name)}: {draw(st.sampled_from(RAW_JSON))}"
            raw[i] = json.dumps(record)[:-1] + f", {pair}}}"  # the name twice, or a value that JSON has not
        elif kind == 6:
            raw[i] = draw(st.sampled_from(["[]", "1", "null", '""', "{}", "{", "[{}]", "", " ", "\0", "{}{}", "//"]))
        else:
            newline = draw(st.sampled_from([*NEWLINES, ",\n", " "]))
    lines = [raw.get(i) or json.dumps(record, ensure_ascii=draw(st.booleans())) for i, record in enumerate(records)]
    content = newline.join(lines).encode("utf-8", errors="replace")
    return draw(damaged(content, 0, 2))


# --- Parquet ---------------------------------------------------------------------------------------------------------

DAY = dt.datetime(2024, 1, 2, 3, 4, 5)
COLUMNS: tuple[Callable[[], pa.Array], ...] = (
    lambda: pa.array([None] * ROWS, type=pa.float64()),
    lambda: pa.nulls(ROWS),
    lambda: pa.array([0.5, float("nan"), 1, 1, 1, 1]),
    lambda: pa.array([0.5, float("inf"), 1, 1, 1, 1]),
    lambda: pa.array([0.5, 1e308, -1e308, 1, 1, 1]),
    lambda: pa.array([1, None, 1, 0, 1, 0], type=pa.int8()),
    lambda: pa.array([2**63, 1, 2, 3, 4, 2**64 - 1], type=pa.uint64()),
    lambda: pa.array([True, False, None, True, True, False]),
    lambda: pa.array([True, False, True, True, True, False]),
    lambda: pa.array(np.array([0.5, 0.25, 1, 0, 0.5, 1], dtype=np.float16)),
    lambda: pa.array([Decimal("0.5"), Decimal("1"), None, Decimal("0"), Decimal("0.25"), Decimal("1")]),
    lambda: pa.array([Decimal(10) ** 30, *map(Decimal, range(5))], type=pa.decimal128(38, 2)),
    lambda: pa.array([Decimal(10) ** 60, *map(Decimal, range(5))], type=pa.decimal256(76, 2)),
    lambda: pa.array([DAY] * ROWS, type=pa.timestamp("ns", tz="Europe/Oslo")),
    lambda: pa.array([DAY] * 3 + [None] * 3, type=pa.timestamp("ms")),
    lambda: pa.array([DAY.date()] * ROWS, type=pa.date32()),
    lambda: pa.array([DAY.time()] * ROWS, type=pa.time64("us")),
    lambda: pa.array([dt.timedelta(seconds=i) for i in range(ROWS)], type=pa.duration("us")),
    lambda: pa.array([b"sms", b"\xff\x00", b"", None, b"x", b"y"]),
    lambda: pa.array([b"0123456789abcdef"] * ROWS, type=pa.binary(16)),
    lambda: pa.array(["", None, "sms", "a\0b", "x" * 70_000, "\u2028"]),
    lambda: pa.array(["a", "b", "a", "b", "a", "b"], type=pa.large_string()),
    lambda: pa.array(["a", "b", "a", None, "a", "b"]).dictionary_encode(),
    lambda: pa.array([1, 2, 1, 2, 1, 3]).dictionary_encode(),
    lambda: pa.array([[1], [], None, [1, 2], [3], [None]]),
    lambda: pa.array([[0.5, 0.5]] * ROWS, type=pa.list_(pa.float64(), 2)),
    lambda: pa.array([{"a": 1, "b": "x"}, None, {"a": 2, "b": None}, {}, {"a": 1}, {"b": "y"}]),
    lambda: pa.array([[("a", 1)]] * ROWS, type=pa.map_(pa.string(), pa.int64())),
)  # fmt: skip


def parquet_bytes(table: pa.Table, **options: Any) -> bytes:
    memory = io.BytesIO()
    parquet.write_table(table, memory, **options)
    return memory.getvalue()


@st.composite
def odd_parquet(draw: st.DrawFn, table: dict[str, list[Any]]) -> bytes:
    """A Parquet file with columns of odd types or names, or with damaged bytes."""
    columns = [pa.array(values) for values in table.values()]
    names = list(table)
    for _ in range(draw(st.integers(0, 2))):
        place = draw(st.integers(0, len(names) - 1))
        if draw(st.integers(0, 2)):
            columns[place] = draw(st.sampled_from(COLUMNS))()
        else:
            names[place] = draw(st.sampled_from(HEADERS))
    made = pa.Table.from_arrays(columns, names=names)
    if draw(st.integers(0, 9)) == 0:
        made = made.slice(0, draw(st.integers(0, 1)))
    compression = draw(st.sampled_from(["snappy", "none", "zstd", "gzip"]))
    content = parquet_bytes(made, compression=compression, row_group_size=draw(st.sampled_from([1, 4, 100])))
    return draw(damaged(content, 0, 2))


ENDINGS = {"csv": odd_csv, "jsonl": odd_json, "parquet": odd_parquet}


@st.composite
def odd_files(draw: st.DrawFn, table: dict[str, list[Any]]) -> tuple[str, bytes]:
    """The ending and the bytes of an odd file."""
    ending = draw(st.sampled_from(list(ENDINGS)))
    return ending, draw(ENDINGS[ending](table))
