"""Bad input through the real command: a clear message with the row and a hint, exit code 2, nothing written."""

import io
import os
import re
import subprocess
import sys
import zipfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from podium.cli import main

LOG = """\
age,action,reward,propensity,pi_now,pi_new
30,sms,1,0.5,0.5,0.2
30,call,0,0.5,0.5,0.8
40,sms,0.5,0.25,0.5,0.3
50,call,0,0.25,0.5,0.6
"""
PLAIN = "age,action,reward\n30,sms,1\n30,call,0\n40,sms,0.5\n50,call,0\n"
JSON = '{"age": 30, "action": "sms", "reward": 1, "pi_now": 0.5, "pi_new": 0.2}\n'
SPECS = (
    "a SPEC is one of column:NAME, file.csv, constant:ACTION, uniform, logged, sql:EXPRESSION, "
    "package.module:object, model.skops"
)
PROPENSITY = "a propensity is the probability of the logged action, in (0, 1]. LDE and DiM need no propensities."
REWARD = "a reward is a finite number in every row."
SCORE = "declare a score that is no probability with podium.Policy(x, proxy=True)."
FILL = "fill the gaps or drop those rows before comparing."
TIME = "give every row a number or an ISO 8601 date; without times, the row order is the time order."
SUMS = "its actions are 'sms', 'call'; declare scores with podium.Policy(x, proxy=True)."
TABLE = "the columns of a policy's table are the state columns, and one per action that holds its probability."
RULE = "write CASE WHEN ... THEN 'a' ELSE 'b' END over age; a policy may not see action or reward."
COLUMNS = "the columns are age, action, reward, propensity, pi_now, pi_new."
LOAD = "write package.module:object; modules are looked for in the current folder first."


@dataclass(frozen=True)
class Bad:
    """What is given, and the whole of what is said; `...` in a message stands for another program's words."""

    name: str
    message: str
    hint: str
    log: str | bytes | None = LOG
    file: str = "log.csv"
    options: tuple[str, ...] = ()
    others: dict[str, str | bytes] = field(default_factory=dict)
    html: str = "report.html"


def cell(column: str, value: str, *rows: int, log: str = LOG) -> str:
    """The log with a value in some cells of a column; rows are counted from 1."""
    header, *body = [line.split(",") for line in log.splitlines()]
    for row in rows or (2,):
        body[row - 1][header.index(column)] = value
    return "\n".join(",".join(line) for line in [header, *body]) + "\n"


def column(name: str, values: str, log: str = LOG) -> str:
    """The log with one more column."""
    lines = zip(log.splitlines(), [name, *values.split()], strict=True)
    return "".join(f"{line},{value}\n" for line, value in lines)


def policies(spec: str, *more: str) -> tuple[str, ...]:
    return ("--policy", f"new={spec}", "--policy", "other=uniform", *more)


def zipped() -> bytes:
    memory = io.BytesIO()
    with zipfile.ZipFile(memory, "w") as archive:
        archive.writestr("log.csv", LOG)
    return memory.getvalue()


def whole_parquet(**columns: Any) -> bytes:
    memory = io.BytesIO()
    parquet.write_table(pa.table(columns), memory)
    return memory.getvalue()


def from_file(name: str, message: str, hint: str, content: str | bytes, file: str = "new.csv", log: str = PLAIN) -> Bad:
    """A policy file that is at fault."""
    return Bad(name, message, hint, log, options=policies(file), others={file: content})


def rule(name: str, message: str, hint: str, sql: str, log: str = PLAIN) -> Bad:
    """A policy in SQL that is at fault."""
    return Bad(name, message, hint, log, options=policies(f"sql:{sql}"))


GOOD_PARQUET = whole_parquet(age=[30], action=["sms"], reward=[1.0], pi_now=[0.5], pi_new=[0.2])

FILES = [
    Bad("no file", "there is no file 'log.csv'", "check the path; it is read from the current folder.", None),
    Bad("a name too long", f"there is no file '{'x' * 300}.csv'", "check the path; ...", None, "x" * 300 + ".csv"),
    Bad("a folder", "'.' is a folder", "name one file.", None, "."),
    Bad(
        "unknown ending",
        "'log.xlsx' has an ending that podium does not know",
        "known endings: .csv, .tsv, .txt, .jsonl, .ndjson, .json, .parquet, .pq.",
        file="log.xlsx",
    ),
    Bad("no ending", "'log' has an ending that podium does not know", "known endings: ...", file="log"),
    Bad("empty file", "log.csv is empty", "write a header line and at least one row.", ""),
    Bad("blank lines", "log.csv is empty", "write a header line and at least one row.", "\n  \n\r\n"),
    Bad("header only", "log.csv has a header and no rows", "write at least one row below the header.", PLAIN[:18]),
    Bad(
        "binary file",
        "log.csv is not a text file",
        "give CSV or JSON lines as plain text; a Parquet file must end in .parquet.",
        bytes(range(256)),
    ),
    Bad("zip as csv", "log.csv is not a text file", "give CSV or JSON lines as plain text; ...", zipped()),
    Bad("gzip as csv", "log.csv is not a text file", "give CSV or JSON lines as plain text; ...", b"\x1f\x8b\x08abc"),
    Bad("parquet as csv", "log.csv is not a text file", "give CSV or JSON lines as plain text; ...", GOOD_PARQUET),
    Bad(
        "latin-1",
        "log.csv is not UTF-8: row 3 holds the byte 0xe9",
        "save the file as UTF-8.",
        cell("action", "tél", 3).encode("latin-1"),
    ),
    Bad(
        "latin-1 after a cell of two lines",
        "log.csv is not UTF-8: row 2 holds the byte 0xe9",
        "save the file as UTF-8.",
        'age,action,reward\n30,"a\nb",1\n\n30,é,1\n'.encode("latin-1"),
    ),
    Bad(
        "latin-1 header",
        "log.csv is not UTF-8: the header holds the byte 0xe2",
        "save the file as UTF-8.",
        LOG.replace("age", "âge").encode("latin-1"),
    ),
    Bad("utf-16", "log.csv is UTF-16, not UTF-8", "save the file as UTF-8.", LOG.encode("utf-16")),
    Bad("utf-16 big end first", "log.csv is UTF-16, not UTF-8", "save the file as UTF-8.", b"\xfe\xff\0a"),
    Bad("duplicate column", "log.csv: the column 'age' appears twice", "give each column a name of its own.",
        LOG.replace("pi_new", "age")),
    Bad("nameless column", "log.csv: column 1 has no name", "give every column a header.", LOG.replace("age", "")),
    Bad("blank column name", "log.csv: column 6 has no name", "give every column a header.",
        LOG.replace("pi_new", "  ")),
    Bad(
        "ragged row",
        "log.csv: row 2 has 7 cells; the header has 6 (1 row)",
        'quote cells that hold a separator: "a, b".',
        cell("action", "call,me"),
    ),
    Bad(
        "short rows",
        "log.csv: row 3 has 1 cell; the header has 6 (2 rows)",
        'quote cells that hold a separator: "a, b".',
        "\n".join([*LOG.splitlines()[:3], "40", "50"]),
    ),
    Bad(
        "unclosed quote",
        "log.csv: row 3 cannot be read: unexpected end of data",
        'close every quote, and write a quote inside a quoted cell as "".',
        cell("action", '"sms', 3),
    ),
    Bad(
        "quote inside a cell",
        "log.csv: row 2 cannot be read: ',' expected after '\"'",
        'close every quote, and write a quote inside a quoted cell as "".',
        cell("action", '"ca"ll'),
    ),
    Bad(
        "unclosed quote in the header",
        "log.csv: the header cannot be read: unexpected end of data",
        "close every quote, ...",
        LOG.replace("age", '"age'),
    ),
    Bad("unknown separator", "the log has no column 'action' for the action", "the columns are age|action|reward.",
        PLAIN.replace(",", "|")),
    Bad(
        "truncated parquet",
        "log.parquet is not a whole Parquet file: ...",
        "write the file again.",
        GOOD_PARQUET[:-20],
        "log.parquet",
    ),
    Bad("empty parquet", "log.parquet is not a whole Parquet file: ...", "write the file again.", b"", "log.parquet"),
    Bad("csv as parquet", "log.parquet is not a whole Parquet file: ...", "write the file again.", LOG, "log.parquet"),
    Bad("parquet without rows", "log.parquet has no rows", "write at least one row.",
        whole_parquet(age=pa.array([], pa.int64())), "log.parquet"),
    Bad(
        "invalid JSON line",
        "log.jsonl: row 2 is not valid JSON: Expecting ',' delimiter (character 13)",
        "write one JSON object per line.",
        JSON + '{"age": 30 "action": "sms"}\n',
        "log.jsonl",
    ),
    Bad(
        "invalid JSON after blank lines",
        "log.jsonl: row 2 is not valid JSON: ...",
        "write one JSON object per line.",
        JSON + "\n\n{\n",
        "log.jsonl",
    ),
    Bad("JSON line that is no object", "log.jsonl: row 2 is no JSON object", "write one JSON object per line.",
        JSON + "[1]\n", "log.jsonl"),
    Bad("JSON array", "log.json: row 1 is no JSON object", "write one JSON object per line.",
        f"[{JSON.strip()}]", "log.json"),
    Bad("JSON nested without end", "log.jsonl: row 1 is nested too deeply", "give numbers, texts and short lists.",
        '{"age": ' + "[" * 100_000, "log.jsonl"),
    Bad("JSON column twice", "log.jsonl: row 1: the column 'age' appears twice", "give each column its own name.",
        JSON.replace('"reward"', '"age"'), "log.jsonl"),
    Bad(
        "JSON list beside the column it makes",
        "log.jsonl: row 2: the column 'age[0]' appears twice",
        "give each column its own name.",
        JSON + '{"age": [1], "age[0]": 2}\n',
        "log.jsonl",
    ),
    Bad("empty JSON lines", "log.jsonl is empty", "write one JSON object per line.", "\n", "log.jsonl"),
    Bad("empty JSON object", "log.jsonl is empty", "write one JSON object per line.", "{}\n", "log.jsonl"),
    Bad("latin-1 JSON", "log.jsonl is not UTF-8: row 1 holds the byte 0xe9", "save the file as UTF-8.",
        JSON.replace("sms", "é").encode("latin-1"), "log.jsonl"),
]  # fmt: skip

CELLS = [
    Bad("no reward column", "the log has no column 'reward' for the reward",
        "the columns are age, action, value, propensity, pi_now, pi_new.", LOG.replace("reward", "value")),
    Bad("no action column", "the log has no column 'action' for the action", "the columns are age, ...",
        LOG.replace("action", "deed")),
    Bad("no state column", "the log has no state columns", "name at least one with --state, or add a constant column.",
        LOG.replace("age", "time")),
    Bad("nan reward", "column 'reward' must be a finite number; row 2 holds nan (2 rows)", REWARD,
        cell("reward", "nan", 2, 4)),
    Bad("inf reward", "column 'reward' must be a finite number; row 3 holds -inf (1 row)", REWARD,
        cell("reward", "-inf", 3)),
    Bad("text reward", "column 'reward' must be a number; row 2 holds 'good' (1 row)", REWARD, cell("reward", "good")),
    Bad("empty reward", "column 'reward' must be a number; row 4 holds nothing (1 row)", REWARD, cell("reward", "", 4)),
    Bad("blank reward", "column 'reward' must be a number; row 2 holds ' ' (1 row)", REWARD, cell("reward", " ")),
    Bad("reward with an underscore", "column 'reward' must be a number; row 2 holds '1_000' (1 row)", REWARD,
        cell("reward", "1_000")),
    Bad("decimal comma", "column 'reward' must be a number; row 3 holds '0,5' (1 row)", REWARD,
        PLAIN.replace(",", ";").replace(".", ",")),
    Bad("reward too large", "column 'reward' must lie within -1e+100 and 1e+100; row 2 holds 1e+300 (1 row)",
        "give the rewards in a larger unit.", cell("reward", "1e300")),
    Bad("JSON reward of 400 digits", "column 'reward' must be a finite number; row 1 holds 99999...... (1 row)", REWARD,
        JSON.replace('"reward": 1', f'"reward": {"9" * 400}'), "log.jsonl"),
    Bad("JSON reward absent", "column 'reward' must be a number; row 2 holds nothing (1 row)", REWARD,
        JSON + JSON.replace('"reward": 1, ', ""), "log.jsonl"),
    Bad("propensity 0", "column 'propensity' must be > 0; row 2 holds 0 (1 row)", PROPENSITY, cell("propensity", "0")),
    Bad("negative propensity", "column 'propensity' must be > 0; row 1 holds -0.1 (2 rows)", PROPENSITY,
        cell("propensity", "-0.1", 1, 3)),
    Bad("propensity above 1", "column 'propensity' must be <= 1; row 2 holds 1.5 (1 row)", PROPENSITY,
        cell("propensity", "1.5")),
    Bad("propensity next to 0", "column 'propensity' must be at least 1e-30; row 2 holds 1e-200 (1 row)", PROPENSITY,
        cell("propensity", "1e-200")),
    Bad("nan propensity", "column 'propensity' must be a finite number; row 2 holds nan (1 row)", PROPENSITY,
        cell("propensity", "nan")),
    Bad("text propensity", "column 'propensity' must be a number; row 2 holds 'half' (1 row)", PROPENSITY,
        cell("propensity", "half")),
    Bad("empty propensity", "column 'propensity' must be a number; row 2 holds nothing (1 row)", PROPENSITY,
        cell("propensity", "")),
    Bad("pi above 1", "column 'pi_new' must be a probability in [0, 1]; row 2 holds 1.2 (1 row)", SCORE,
        cell("pi_new", "1.2")),
    Bad("pi below 0", "column 'pi_new' must be a probability in [0, 1]; row 3 holds -0.2 (2 rows)", SCORE,
        cell("pi_new", "-0.2", 3, 4)),
    Bad("nan pi", "column 'pi_new' must be a finite number; row 2 holds nan (1 row)", SCORE, cell("pi_new", "nan")),
    Bad("text pi", "column 'pi_new' must be a number; row 2 holds 'high' (1 row)",
        "a probability is a number between 0 and 1.", cell("pi_new", "high")),
    Bad("empty pi", "column 'pi_new' must be a number; row 2 holds nothing (1 row)",
        "a probability is a number between 0 and 1.", cell("pi_new", "")),
    Bad("pi does not sum to 1",
        "policy 'x': the sum of a row's probabilities must be 1 within 1e-6; row 2 holds 1.1 (1 row)", SUMS,
        column("pi_x:sms", "1 0.5 0 0", column("pi_x:call", "0 0.6 1 1")).replace("pi_x:call,pi_x:sms", "pi_x:call,pi_x:sms")),
]  # fmt: skip
