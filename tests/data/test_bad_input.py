"""Bad input through the real command: a clear message with the row and a hint, exit code 2, nothing written."""

import io
import os
import re
import shlex
import subprocess
import sys
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from podium.command.cli import main

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
    "a SPEC is one of column:NAME, file.csv, constant:ACTION, shares:A=.4,B=.6, uniform, logged, sql:EXPRESSION, "
    "package.module:object, learned:package.module:object, model.skops, sb3:ALGO:model.zip, vw:predictions.txt"
)
PROPENSITY = "a propensity is the probability of the logged action, in (0, 1]. LDE and DiM need no propensities."
REWARD = "a reward is a finite number in every row."
SCORE = "declare a score that is no probability with podium.Policy(x, proxy=True)."
FILL = "fill the gaps or drop those rows before comparing."
GOES = "This command goes on:\n\n  COMMAND "  # the one that was given
DROP = GOES + "--drop-missing"
ENDINGS = "known endings: .csv, .tsv, .txt, .jsonl, .ndjson, .json, .parquet, .pq, .xlsx, .ods, .dsjson, .vw."
TIME = "give every row a number or an ISO 8601 date; without times, the row order is the time order."
SUMS = "its actions are 'sms', 'call'; declare scores with podium.Policy(x, proxy=True)."
TABLE = "the columns of a policy's table are the state columns, and one per action that holds its probability."
ITS_ROW = "a policy chooses row by row: add what you need of other rows, such as an average, as a column."
RULE = "write CASE WHEN ... THEN 'a' ELSE 'b' END over age; a policy may not see action or reward."
COLUMNS = "the columns are age, action, reward, propensity, pi_now, pi_new."
LOAD = "write package.module:object, with a module of the current folder or an installed one."


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
    replaced: tuple[str, ...] = ()  # words of the options that the hint replaces


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
    Bad("a folder", "the folder '.' holds no Parquet files", "name files: 'folder/*.csv'.", None, "."),
    Bad(
        "unknown ending",
        "'log.docx' has an ending that podium does not know",
        ENDINGS,
        file="log.docx",
    ),
    Bad("no ending", "'log' has an ending that podium does not know", ENDINGS, file="log"),
    Bad("empty file", "log.csv is empty", "write a header line and at least one row.", ""),
    Bad("blank lines", "log.csv is empty", "write a header line and at least one row.", "\n  \n\r\n"),
    Bad("header only", "log.csv has a header and no rows", "write at least one row below the header.", PLAIN[:18]),
    Bad(
        "binary file",
        "log.csv is not a text file",
        "give CSV or JSON lines as plain text; a Parquet file must end in .parquet.",
        bytes(range(256)),
    ),
    Bad("zip as csv", "log.csv is not a whole zip file: File is not a zip file", "export it again.", zipped()[:-30]),
    Bad("gzip as csv", "log.csv is not a whole gzip file: ...", "export it again.", b"\x1f\x8b\x08abc"),
    Bad("parquet as csv", "log.csv is not a whole Parquet file: ...", "write the file again.", GOOD_PARQUET[:-9]),
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
    Bad("a cell without end", "log.csv: row 2 cannot be read: field larger than field limit (131072)",
        "keep cells shorter; is a quote left open that begins before this cell?",
        cell("action", '"' + "x" * 150_000)),
    Bad("unknown separator", "log.csv has 2 problems:\n- the log has no column 'action' for the action\n"
        "- the log has no column 'reward' for the reward", "the columns are age~action~reward.",
        PLAIN.replace(",", "~")),
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
        "log.jsonl: row 2 is not valid JSON: Expecting ',' delimiter (character 12)",
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
        "[1, 2]", "log.json"),
    Bad("JSON nested without end", "log.jsonl: row 1 is nested too deeply", "give numbers, texts and short lists.",
        '{"age": ' + "[" * 100_000, "log.jsonl"),
    Bad("JSON number of 5000 digits", "log.jsonl: row 1 is not valid JSON: Exceeds the limit ...",
        "write one JSON object per line.", f'{{"age": {"9" * 5000}}}', "log.jsonl"),
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
]  # fmt: skip

CELLS = [
    Bad("no reward column", "the log has no column 'reward' for the reward; 'value' may be meant",
        GOES + "--reward value", LOG.replace("reward", "value")),
    Bad("headers that would move the cursor", "the log has no column 'action' for the action; 'deed' may be meant",
        GOES + "--action deed",
        LOG.replace("age", "\x1b[2Jage").replace("action", "deed")),
    Bad("no action column", "the log has no column 'action' for the action; 'deed' may be meant",
        GOES + "--action deed",
        LOG.replace("action", "deed")),
    Bad("nan reward", "column 'reward' must be a finite number; row 2 holds nan (2 rows)", DROP,
        cell("reward", "nan", 2, 4)),
    Bad("inf reward", "column 'reward' must be a finite number; row 3 holds -inf (1 row)", REWARD,
        cell("reward", "-inf", 3)),
    Bad("text reward", "column 'reward' must be a number; row 2 holds 'good' (1 row)", REWARD, cell("reward", "good")),
    Bad("empty reward", "column 'reward' must be a number; row 4 holds nothing (1 row)", DROP, cell("reward", "", 4)),
    Bad("blank reward", "column 'reward' must be a number; row 2 holds ' ' (1 row)", DROP, cell("reward", " ")),
    Bad("reward with an underscore", "column 'reward' must be a number; row 2 holds '1_000' (1 row)", REWARD,
        cell("reward", "1_000")),
    Bad("reward too large", "column 'reward' must lie within -1e+100 and 1e+100; row 2 holds 1e+300 (1 row)",
        "give the rewards in a larger unit.", cell("reward", "1e300")),
    Bad("JSON reward of 400 digits", "column 'reward' must be a finite number; row 1 holds 99999...... (1 row)", REWARD,
        JSON.replace('"reward": 1', f'"reward": {"9" * 400}'), "log.jsonl"),
    Bad("JSON reward absent", "column 'reward' must be a number; row 2 holds nothing (1 row)", DROP,
        JSON + JSON.replace('"reward": 1, ', ""), "log.jsonl"),
    Bad("propensity 0", "column 'propensity' must be > 0; row 2 holds 0 (1 row)", PROPENSITY, cell("propensity", "0")),
    Bad("negative propensity", "column 'propensity' must be > 0; row 1 holds -0.1 (2 rows)", PROPENSITY,
        cell("propensity", "-0.1", 1, 3)),
    Bad("propensity above 1", "column 'propensity' must be <= 1; row 2 holds 1.5 (1 row)", PROPENSITY,
        cell("propensity", "1.5")),
    Bad("propensity next to 0", "column 'propensity' must be at least 1e-30; row 2 holds 1e-200 (1 row)", PROPENSITY,
        cell("propensity", "1e-200")),
    Bad("nan propensity", "column 'propensity' must be a finite number; row 2 holds nan (1 row)", DROP,
        cell("propensity", "nan")),
    Bad("text propensity", "column 'propensity' must be a number; row 2 holds 'half' (1 row)", PROPENSITY,
        cell("propensity", "half")),
    Bad("empty propensity", "column 'propensity' must be a number; row 2 holds nothing (1 row)", DROP,
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
        column("pi_x:sms,pi_x:call", "1,0 0.5,0.6 0,1 0,1")),
    Bad("pi disagrees with its distribution",
        "policy 'x': the probability of the logged action must agree with the full distribution within 1e-6; "
        "row 3 holds 0.4 (1 row)",
        "correct the one or the other, or leave the column of the logged action out.",
        column("pi_x,pi_x:sms,pi_x:call", "1,1,0 0.5,0.5,0.5 0.4,0.5,0.5 1,0,1")),
    Bad("one column of a distribution",
        "policy 'x': the sum of a row's probabilities must be 1 within 1e-6; row 1 holds 0.5 (4 rows)",
        "its actions are 'sms'; declare scores with podium.Policy(x, proxy=True).",
        column("pi_x:sms", "0.5 0.5 0.5 0.5")),
    Bad("pi outside [0, 1] in a distribution",
        "column 'pi_x:sms' must be a probability in [0, 1]; row 2 holds 1.5 (1 row)", SCORE,
        column("pi_x:sms,pi_x:call", "1,0 1.5,-0.5 0,1 0,1")),
    Bad("propensity disagrees with its distribution",
        "column 'propensity' must agree with the behaviour policy within 1e-6; row 3 holds 0.25 (2 rows)",
        "give the propensities or the behaviour policy that really chose the actions.",
        column("propensity:sms,propensity:call", "0.5,0.5 0.5,0.5 0.5,0.5 0.5,0.5")),
    Bad("behaviour does not sum to 1",
        "policy 'behavior': the sum of a row's probabilities must be 1 within 1e-6; "
        "row 2 (line 3) holds 1.1 (1 row)", SUMS,
        column("propensity:sms,propensity:call", "0.5,0.5 0.6,0.5 0.25,0.75 0.75,0.25")),
    Bad("behaviour that cannot have logged the action",
        "the behaviour policy's probability of the logged action must be > 0; row 2 (line 3) holds 0 (1 row)",
        PROPENSITY,
        column("propensity:sms,propensity:call,pi_a,pi_b", "1,0,1,1 1,0,1,1 1,0,1,1 0,1,1,1", PLAIN)),
    Bad("one policy", "a comparison needs at least two policies; there is 1: now",
        "add the policy in use now as 'logged', or another with --policy NAME=SPEC.",
        column("pi_now", "1 1 1 1", PLAIN)),
    Bad("no policies", "no policies to compare",
        "give policies={'name': ...} or --policy NAME=SPEC, or add pi_<name> columns to the log.", PLAIN),
    Bad("mixed states", "column 'age' mixes number and text; row 3 holds 'forty' (1 row)",
        GOES + "--text age", cell("age", "forty", 3)),
    Bad("mixed actions", "column 'action' mixes text and number; row 2 holds 7 (1 row)",
        GOES + "--text action", cell("action", "7")),
    Bad("mixed JSON actions", "column 'action' mixes text and number; row 2 holds 7 (1 row)", GOES + "--text action",
        JSON + JSON.replace('"sms"', "7") + JSON, "log.jsonl"),
    Bad("truth values beside numbers", "column 'age' mixes number and truth value; row 2 holds True (1 row)",
        GOES + "--text age", JSON + JSON.replace("30", "true") + JSON, "log.jsonl"),
    Bad("inf state", "column 'age' must be finite; row 2 holds inf (1 row)", FILL, cell("age", "inf")),
    Bad("missing action", "column 'action' must not be missing; row 4 holds nothing (1 row)", DROP,
        cell("action", "", 4)),
    Bad("JSON null action", "column 'action' must not be missing; row 2 holds nothing (1 row)", DROP,
        JSON + JSON.replace('"sms"', "null"), "log.jsonl"),
    Bad("JSON lists of two lengths", "column 'age' must hold 2 values in every row; row 2 holds 1 of them (1 row)",
        "give every row a list of one length, or choose the state columns without it (--state).",
        JSON.replace("30", "[30, 1]") + JSON.replace("30", "[30]"), "log.jsonl"),
    Bad("JSON object as action", "column 'action' holds several values in each row, which cannot be the action",
        "name one of its parts, such as 'action:by'.", JSON.replace('"sms"', '{"by": "sms"}'), "log.jsonl"),
    Bad("parquet lists as actions", "column 'action' holds several values in each row, which cannot be the action",
        "name one of its parts, such as 'action[0]'.",
        whole_parquet(age=[1], action=[[1, 2]], reward=[1.0]), "log.parquet"),
    Bad("parquet lists of texts as states", "column 'age' holds lists, which podium does not read",
        "give each value of a list a column of its own.",
        whole_parquet(age=[["a", "b"]], action=["x"], reward=[1.0]), "log.parquet"),
    Bad("parquet lists of two lengths", "column 'age' must hold 2 values in every row; row 2 holds 1 of them (1 row)",
        "give every row a list of one length, or choose the state columns without it (--state).",
        whole_parquet(age=[[1, 2], [1]], action=["x", "y"], reward=[1.0, 0.0]), "log.parquet"),
    Bad("long texts alone", "every column that could be the state holds long texts: 'age'",
        "add what is known before the action as columns, such as an embedding of the text (a list of numbers), or take "
        "each text as a state of its own: --state age.",
        whole_parquet(age=["a prompt " * 8, "another " * 9], action=["x", "y"], reward=[1.0, 0.0]), "log.parquet"),
    Bad("gaps in time", "column 'time' must not have gaps; row 2 holds nothing (1 row)", DROP,
        column("time", "1 2 3 4").replace("0.8,2", "0.8,")),
    Bad("gaps in dates", "column 'time' must not have gaps; row 1 holds nothing (2 rows)", DROP,
        column("time", "x 2024-01-02 x 2024-01-04").replace(",x", ",")),
    Bad("text in time", "column 'time' must be a number or an ISO 8601 date; row 3 holds 'soon' (1 row)", TIME,
        column("time", "2024-01-01 2024-01-02 soon 2024-01-04")),
    Bad("numbers among dates", "column 'time' must be a number or an ISO 8601 date; row 2 holds 7 (1 row)", TIME,
        column("time", "2024-01-01 7 2024-01-03 2024-01-04")),
    Bad("time zones in some rows",
        "column 'time' must name a time zone in every row or in none; row 2 holds '2024-01-02' (3 rows)", TIME,
        column("time", "2024-01-01T00:00Z 2024-01-02 2024-01-03 2024-01-04")),
    Bad("inf in time", "column 'time' must be a finite number; row 4 holds inf (1 row)", TIME,
        column("time", "1 2 3 inf")),
]  # fmt: skip

POLICY_FILES = [
    from_file("unknown policy file", "there is no file 'missing.csv'", "check the path; ...", "", "missing.csv"),
    from_file("policy file with too few rows", "policy 'new': its table has 3 rows; the log has 4 rows",
              "give one row per log row in the same order, a single row for all, or key it by age.",
              "sms,call\n" + "1,0\n" * 3),
    from_file("policy file with too many rows", "policy 'new': its table has 5 rows; the log has 4 rows",
              "give one row per log row in the same order, a single row for all, or key it by age.",
              "sms,call\n" + "1,0\n" * 5),
    from_file("keyed policy file that lacks a state", "policy 'new' must have a row for every state; row 3 holds 40 "
              "(1 row)", "add the missing states to its table.", "age,sms,call\n30,1,0\n50,1,0\n"),
    from_file("keyed policy file that contradicts itself",
              "policy 'new': rows 1 and 4 of its table describe one state and differ",
              "keep one row per state, or one row per log row in the same order.",
              "age,sms,call\n30,1,0\n40,1,0\n50,1,0\n30,0,1\n40,1,0\n"),
    from_file("row of a keyed policy file that does not sum to 1",
              "policy 'new': the sum of a row of its table must be 1 within 1e-6; row 2 holds 0.9 (1 row)", SUMS,
              "age,sms,call\n30,1,0\n40,0.5,0.4\n50,1,0\n"),
    from_file("probability above 1 in a policy file",
              "policy 'new': column 'sms' must be a probability in [0, 1]; row 3 holds 1.5 (1 row)", SCORE,
              "age,sms,call\n30,1,0\n40,1,0\n50,1.5,-0.5\n"),
    from_file("text in a policy file", "policy 'new': column 'call' must be a number; row 2 holds 'no' (1 row)", TABLE,
              "age,sms,call\n30,1,0\n40,1,no\n50,1,0\n"),
    from_file("gap in a policy file", "policy 'new': column 'sms' must be a number; row 3 holds nothing (1 row)", TABLE,
              "age,sms,call\n30,1,0\n40,1,0\n50,,1\n"),
    from_file("gap in the keys of a policy file",
              "policy 'new': column 'age' must not be missing; row 2 holds nothing (1 row)", FILL,
              "age,sms,call\n30,1,0\n,1,0\n40,1,0\n50,1,0\n"),
    from_file("policy file of keys alone", "policy 'new': its table has no columns of probabilities", TABLE,
              "age\n30\n40\n50\n"),
    from_file("policy file with a column that is no action",
              "policy 'new': column 'reward' must be a number; row 1 holds 'good' (3 rows)", TABLE,
              "age,sms,call,reward\n30,1,0,good\n40,1,0,good\n50,1,0,good\n"),
    from_file("policy file with half of the keys",
              "policy 'new': its table has the state column 'age' and lacks 'sex'",
              "give every state column as a key, or none and one row per log row.",
              "age,sms,call\n30,1,0\n40,1,0\n50,1,0\n", log=column("sex", "f m f m", PLAIN)),
    from_file("policy file that names an action twice", "policy 'new' names the action 1 twice",
              "name each action once.", "age,1,1.0\n30,0.5,0.5\n40,0.5,0.5\n50,0.5,0.5\n",
              log=PLAIN.replace("sms", "1").replace("call", "2")),
    from_file("empty policy file", "new.csv is empty", "write a header line and at least one row.", ""),
    from_file("policy file without rows", "new.csv has a header and no rows",
              "write at least one row below the header.", "sms,call\n"),
    from_file("policy file in latin-1", "new.csv is not UTF-8: the header holds the byte 0xe9",
              "save the file as UTF-8.", "é,call\n1,0\n".encode("latin-1")),
    from_file("JSON policy file with a gap",
              "policy 'new': column 'call' must be a number; row 2 holds nothing (1 row)", TABLE,
              '{"age":30,"sms":1,"call":0}\n{"age":40,"sms":1}\n{"age":50,"sms":1,"call":0}\n', "new.jsonl"),
    from_file("truncated parquet policy file", "new.parquet is not a whole Parquet file: ...", "write the file again.",
              GOOD_PARQUET[:-20], "new.parquet"),
    from_file("no skops file", "there is no file 'missing.skops'", "check the path of the model.", "", "missing.skops"),
    from_file("a text as skops file", "new.skops is not a skops file: ...", "save the model with skops.io.dump.",
              "model", "new.skops"),
]  # fmt: skip

RULES = [
    rule("SQL with an error", "policy 'new': the SQL cannot be run: Parser Error: syntax error...", RULE, "CASE"),
    rule("SQL with an unknown column", 'policy \'new\': the SQL cannot be run: Binder Error: ..."weight"...', RULE,
         "CASE WHEN weight > 80 THEN 'sms' ELSE 'call' END"),
    rule("SQL that reads the reward", 'policy \'new\': the SQL cannot be run: Binder Error: ..."reward"...', RULE,
         "CASE WHEN reward > 0 THEN 'sms' ELSE 'call' END"),
    rule("SQL that reads the action", 'policy \'new\': the SQL cannot be run: Binder Error: ..."action"...', RULE,
         "action"),
    rule("SQL that reads a policy", 'policy \'new\': the SQL cannot be run: Binder Error: ..."pi_new"...', RULE,
         "CASE WHEN pi_new > 0.5 THEN 'sms' ELSE 'call' END", LOG),
    rule("SQL that chooses nothing", "policy 'new' must choose an action in every row; row 3 holds nothing (2 rows)",
         "add an ELSE to the CASE.", "CASE WHEN age < 35 THEN 'sms' END"),
    rule("SQL that chooses no number", "policy 'new' must choose an action in every row; row 3 holds nothing (2 rows)",
         "add an ELSE to the CASE.", "CASE WHEN age < 35 THEN 1.5 END"),
    rule("two statements", "policy 'new': the SQL cannot be run: Parser Error: ...", RULE, "'sms'; DROP TABLE log"),
    rule("two statements in disguise", "policy 'new': the SQL must be one expression with one value per row", RULE,
         "'sms') FROM log; SELECT ('call'"),
    rule("two columns", "policy 'new': the SQL must be one expression with one value per row", RULE,
         "'sms'), ('call'"),
    rule("more rows than the log",
         "policy 'new': the SQL uses unnest(), which looks at more than the named columns of one row", ITS_ROW,
         "unnest(['sms', 'call'])"),
    rule("SQL that reads a file",
         "policy 'new': the SQL uses SELECT, which looks at more than the named columns of one row", ITS_ROW,
         "(SELECT content FROM read_text('log.csv'))"),
    rule("SQL that reads a table of files",
         "policy 'new': the SQL uses SELECT, which looks at more than the named columns of one row", ITS_ROW,
         "(SELECT action FROM 'log.csv' LIMIT 1)"),
    rule("SQL that chooses a number", "policy 'new' must choose actions of the log; row 1 holds 30 (4 rows)",
         "the actions are 'call', 'sms'; probabilities are an array of floats, or (N, A).", "age"),
    rule("SQL that chooses a list", "policy 'new' must hold numbers or texts; row 1 holds ['sms'] (4 rows)",
         "give one number or text per row.", "['sms']"),
    rule("SQL over columns that differ by case", "policy 'new': SQL cannot tell the columns 'age' and 'Age' apart",
         "rename one of them.", "CASE WHEN age > 40 THEN 'sms' ELSE 'call' END", column("Age", "1 2 3 4", PLAIN)),
    rule("SQL that fails in a row", "policy 'new': the SQL cannot be run: Conversion Error: ...", RULE,
         "CAST('x' || age AS INTEGER)"),
]  # fmt: skip

OPTIONS = [
    Bad("unknown SPEC", "unknown policy 'best'", f"{SPECS}; or name a column of the log.", options=policies("best")),
    Bad("SPEC without its rest", "unknown policy 'constant:'",
        "write constant:ACTION with an action of the log; or name a column of the log.", options=policies("constant:")),
    Bad("--policy without =", "--policy 'new' is not NAME=SPEC", f"{SPECS}.", options=("--policy", "new")),
    Bad("--policy without a name", "--policy '=uniform' is not NAME=SPEC", f"{SPECS}.",
        options=("--policy", "=uniform")),
    Bad("the same policy twice", "the policy 'new' is given twice", "give each policy a name of its own.",
        options=policies("uniform", "--policy", "new=logged")),
    Bad("blank policy name", "a policy's name must be a text", "give policies={'name': ...}.",
        options=policies("uniform", "--policy", " =logged")),
    Bad("constant of an unknown action", "policy 'new': 'letter' is not an action of this log",
        "the actions are 'call', 'sms'; name more with --actions.", options=policies("constant:letter")),
    Bad("unknown column", "policy 'new': the log has no column 'pi_old'", COLUMNS, options=policies("column:pi_old")),
    Bad("logged without propensities", "policy 'new' is the behaviour policy, and the log does not say what that is",
        GOES + "--behavior estimate", PLAIN, options=policies("logged")),
    Bad("missing module", "cannot load the policy missing_module:rule: No module named 'missing_module'", LOAD,
        options=policies("missing_module:rule")),
    Bad("missing object", "cannot load the policy rules_empty:rule: module 'rules_empty' has no attribute 'rule'", LOAD,
        options=policies("rules_empty:rule"), others={"rules_empty.py": ""}),
    Bad("module with a syntax error", "cannot load the policy rules_syntax:rule: SyntaxError: ...", LOAD,
        options=policies("rules_syntax:rule"), others={"rules_syntax.py": "def rule(:\n"}),
    Bad("module that fails", "cannot load the policy rules_fail:rule: ZeroDivisionError: division by zero", LOAD,
        options=policies("rules_fail:rule"), others={"rules_fail.py": "1 / 0\n"}),
    Bad("module that exits", "cannot load the policy rules_exit:rule: SystemExit: 3", LOAD,
        options=policies("rules_exit:rule"), others={"rules_exit.py": "raise SystemExit(3)\n"}),
    Bad("function that fails", "policy 'new' failed on the log's states: KeyError: 'weight'",
        "it was called with an array of 4 states.", options=policies("rules_key:rule"),
        others={"rules_key.py": "def rule(states):\n    return {}['weight']\n"}),
    Bad("function that gives one answer", "policy 'new' has 1 row; the log has 4 rows",
        "a policy gives one answer per log row, in the same order.", options=policies("rules_one:rule"),
        others={"rules_one.py": "def rule(states):\n    return 'call'\n"}),
    Bad("function that gives probabilities of some action",
        "policy 'new' must choose actions of the log; row 1 holds 0.5 (4 rows)",
        "the actions are 'call', 'sms'; probabilities are an array of floats, or (N, A).",
        options=policies("rules_half:rule"),
        others={"rules_half.py": "def rule(states):\n    return states * 0 + 0.5\n"}),
    Bad("object of no known form", "policy 'new' has a form that podium does not know: int",
        "give a column name, an array, a callable, a classifier, a table keyed by state, shares of actions, or a SPEC "
        "string.",
        options=policies("rules_int:rule"), others={"rules_int.py": "rule = 5\n"}),
    Bad("unknown estimator", "unknown estimator 'XYZ'", "the estimators are ...LDE, DRE, IPS, DiM, ...",
        options=("--estimator", "XYZ")),
    Bad("two methods of one name", "'DM' could be two methods",
        "the paper's Direct Method is DiM; the model-based direct method of other libraries is DirectModel.",
        options=("--estimator", "DM")),
    Bad("no number", "'cIPS:ten' names no number after the colon", "write cIPS:10, say.",
        options=("--estimator", "cIPS:ten")),
    Bad("negative cap", "the parameter of cIPS must be a number from 0 on; it is -1.0", "write cIPS:10, say.",
        options=("--estimator", "cIPS:-1")),
    Bad("estimator without propensities", "IPS needs the probability of each logged action, and the log has none",
        "add a propensity column or give the behaviour policy; LDE and DiM need no propensities.",
        column("pi_a,pi_b", "1,0 1,0 1,0 1,0", PLAIN), options=("--estimator", "IPS")),
    Bad("unknown baseline", "unknown baseline 'median'",
        'did you mean \'mean\'? a baseline is "mean", "linear", "state", a number, ...',
        options=("--baseline", "median")),
    Bad("nan baseline", "the baseline must be a finite number",
        "use the mean reward, or a number from its range.", options=("--baseline", "nan")),
    Bad("missing baseline", "cannot load the baseline missing_module:q: No module named 'missing_module'", LOAD,
        options=("--baseline", "missing_module:q")),
    Bad("nameless baseline", "cannot load the baseline :: ValueError: Empty module name", LOAD,
        options=("--baseline", ":")),
    Bad("baseline that needs distributions",
        "the baseline 'linear' depends on the action and needs pi(a|s) for every action; policy 'now' gives only the "
        "probability of the logged action",
        "give its whole distribution: an (N, A) array, a callable, a classifier, or columns pi_<name>:<action>.",
        options=("--baseline", "linear")),
    Bad("huge baseline", "LDE: rewards, baseline or weights are too large for floating point numbers",
        "give the rewards in a larger unit, and a baseline from their range.", options=("--baseline", "1e300")),
    Bad("level 0", "level must lie between 0 and 1; it is 0.0", "use level=0.95 for 95% intervals.",
        options=("--level", "0")),
    Bad("level 95", "level must lie between 0 and 1; it is 95.0", "use level=0.95 for 95% intervals.",
        options=("--level", "95")),
    Bad("nan level", "level must lie between 0 and 1; it is nan", "use level=0.95 for 95% intervals.",
        options=("--level", "nan")),
    Bad("level that is no number", "argument --level: invalid float value: 'high'", "see podium compare --help.",
        options=("--level", "high")),
    Bad("negative bootstrap", "bootstrap must be a whole number from 0 to 1,000,000; it is -5", "use bootstrap=1000.",
        options=("--bootstrap", "-5")),
    Bad("negative seed", "seed must be a whole number from 0 on; it is -1", "use seed=0.", options=("--seed", "-1")),
    Bad("seed that is no number", "argument --seed: invalid int value: '0.5'", "see podium compare --help.",
        options=("--seed", "0.5")),
    Bad("unknown option", "unrecognized arguments: --speed", "did you mean '--seed'? see podium --help.",
        options=("--speed",)),
    Bad("unknown choice", "argument --normalize: invalid choice: 'cells' ...", "see podium compare --help.",
        options=("--normalize", "cells")),
    Bad("action not in --actions", "column 'action' must be in the action space; row 2 holds 'call' (2 rows)",
        "the action space is 'sms', 'letter'; name every action that may be taken.",
        options=("--actions", "sms,letter")),
    Bad("action twice in --actions", "the action space names 'sms' twice", "name each action once.",
        options=("--actions", "sms,call,sms")),
    Bad("empty action in --actions", "--actions 'sms,,call' names an empty action", "write --actions a,b,c.",
        options=("--actions", "sms,,call")),
    Bad("no action in --actions", "--actions '' names an empty action", "write --actions a,b,c.",
        options=("--actions", "")),
    Bad("texts for numbers in --actions", "column 'action' must be in the action space; row 1 holds 1 (4 rows)",
        "the action space is 'one', 'two'; name every action that may be taken.",
        LOG.replace("sms", "1").replace("call", "2"), options=("--actions", "one,two")),
    *[
        Bad(f"--{role} of a missing column", f"the log has no column 'no' for the {role}", COLUMNS,
            options=(f"--{role}", "no"))
        for role in ("state", "time", "unit")
    ],
    *[
        Bad(f"--{role} of a missing column", f"the log has no column 'no' for the {role}; {role!r} may be meant",
            GOES + f"--{role} {role}", options=(f"--{role}", "no"), replaced=(f"--{role}", "no"))
        for role in ("action", "reward", "propensity")
    ],
    Bad("--text of a missing column", "log.csv: there is no column 'no' to read as text", COLUMNS,
        options=("--text", "no")),
    Bad("gap in the unit", "column 'who' must not be missing; row 2 holds nothing (1 row)", DROP,
        column("who", "1 2 3 4").replace("0.8,2", "0.8,"), options=("--unit", "who")),
    Bad("reward as state", "the column 'reward' cannot be both the reward and the state",
        "name another column, or leave the option out.", options=("--state", "reward")),
    Bad("reward as action", "the column 'reward' cannot be both the action and the reward",
        "name another column, or leave the option out.", options=("--action", "reward")),
    Bad("behaviour that disagrees",
        "column 'propensity' must agree with the behaviour policy within 1e-6; row 3 holds 0.25 (2 rows)",
        "give the propensities or the behaviour policy that really chose the actions.",
        options=("--behavior", "uniform")),
    Bad("unknown behaviour", "unknown policy 'random'", f"{SPECS}; or name a column of the log.",
        options=("--behavior", "random")),
    Bad("report in a missing folder", "cannot write 'missing/report.html': No such file or directory",
        "name a file in an existing folder that you may write to.", html="missing/report.html"),
    Bad("report onto a folder", "cannot write '.': it is a folder", "name a file, not a folder.", html="."),
    Bad("report without a name", "cannot write '': it is a folder", "name a file, not a folder.", html=""),
    Bad("report in a file", "cannot write 'log.csv/report.html': Not a directory",
        "name a file in an existing folder that you may write to.", html="log.csv/report.html"),
    Bad("report with a name too long", f"cannot write '{'x' * 300}': File name too long",
        "name a file in an existing folder that you may write to.", html="x" * 300),
]  # fmt: skip

EVERY = [*FILES, *CELLS, *POLICY_FILES, *RULES, *OPTIONS]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty current folder, from which modules can be loaded without lasting effect."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    return tmp_path


def write_files(bad: Bad, folder: Path) -> list[str]:
    """Write what is given; the names of all files that are there now."""
    given = dict(bad.others) if bad.log is None else {bad.file: bad.log, **bad.others}
    for name, content in given.items():
        if "missing" not in name:
            (folder / name).write_bytes(content.encode() if isinstance(content, str) else content)
    return sorted(os.listdir(folder))


def matches(expected: str, text: str) -> bool:
    """Whether a text is the expected one; `...` stands for anything on one line."""
    return re.fullmatch(re.escape(expected).replace(re.escape("..."), ".*"), text) is not None


def located(bad: Bad) -> str:
    """The message with the line of the file, as an editor counts, beside the row."""
    if (
        not bad.message.startswith("column ")
        or "column 'pi_" in bad.message
        or "--behavior" in bad.options
        or not bad.file.endswith((".csv", ".jsonl"))
    ):
        return bad.message
    below = 0 if bad.file.endswith(".jsonl") else 1
    return re.sub(r"row (\d+) holds", lambda m: f"row {m[1]} (line {int(m[1]) + below}) holds", bad.message)


def check_said(bad: Bad, error: str, arguments: Sequence[str]) -> None:
    without = [word for word in arguments if word not in bad.replaced]
    hint = bad.hint.replace("COMMAND", shlex.join(["podium", *without]))
    assert matches(f"podium: {located(bad)}\n\nHint: {hint}\n", error), error


def test_no_case_is_named_twice():
    assert len({bad.name for bad in EVERY}) == len(EVERY)


@pytest.mark.parametrize("bad", EVERY, ids=lambda bad: bad.name)
def test_compare_says_what_is_wrong_and_writes_nothing(bad: Bad, folder: Path, capsys: pytest.CaptureFixture[str]):
    before = write_files(bad, folder)
    arguments = ["compare", bad.file, *bad.options, "--html", bad.html]
    code = main(arguments)
    out, error = capsys.readouterr()
    check_said(bad, error, arguments)
    assert code == 2
    assert out == ""
    assert sorted(os.listdir(folder)) == before


# One policy is enough where nothing is compared.
NOT_OF_COMPARE = [bad for bad in [*FILES, *CELLS, *POLICY_FILES[:4], *RULES[:3]] if bad.name != "one policy"]


# A file can be checked before its roles or policies are named.
FIRST_LOOK = ("no policies", "no reward column", "no action column", "headers that would move the cursor",
              "unknown separator")  # fmt: skip
BY_COMMAND = [
    pytest.param(bad, command, id=f"{bad.name}-{command}")
    for bad in NOT_OF_COMPARE
    for command in ("evaluate", "states", "check")
    if command != "check" or bad.name not in FIRST_LOOK
]


@pytest.mark.parametrize(("bad", "command"), BY_COMMAND)
def test_every_command_says_the_same(bad: Bad, command: str, folder: Path, capsys: pytest.CaptureFixture[str]):
    write_files(bad, folder)
    arguments = [command, bad.file, *bad.options]
    code = main(arguments)
    out, error = capsys.readouterr()
    check_said(bad, error, arguments)
    assert code == 2
    assert out == ""


BY_NAME = {bad.name: bad for bad in EVERY}
OUTSIDE = ["empty file", "nan reward", "level that is no number", "SQL that reads a file", "module that exits"]


@pytest.mark.parametrize("name", OUTSIDE)
def test_a_process_of_its_own_says_it_too(name: str, folder: Path):
    bad = BY_NAME[name]
    before = write_files(bad, folder)
    arguments = ["compare", bad.file, *bad.options, "--html", bad.html]
    command = [sys.executable, "-B", "-W", "error", "-m", "podium", *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    check_said(bad, done.stderr, arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert sorted(os.listdir(folder)) == before


@pytest.mark.parametrize(
    ("arguments", "message", "hint"),
    [
        ([], "the following arguments are required: COMMAND", "see podium --help."),
        (["guess"], "argument COMMAND: invalid choice: 'guess' ...", "see podium --help."),
        (["compare"], "the following arguments are required: LOG", "see podium compare --help."),
        (["evaluate", "log.csv", "--estimator", "XYZ"], "unknown estimator 'XYZ'", "the estimators are LDE, ..."),
        (["states", "log.csv", "--seed", "-1"], "seed must be a whole number from 0 on; it is -1", "use seed=0."),
        (["demo", "--out", "log.csv"], "cannot make the folder 'log.csv': File exists", "use --out DIR."),
        (["demo", "--out", "taken"], "cannot write 'taken/log.csv': it is a folder", "name a file, not a folder."),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)  # fmt: skip
def test_usage(arguments: list[str], message: str, hint: str, folder: Path, capsys: pytest.CaptureFixture[str]):
    (folder / "log.csv").write_text(LOG)
    (folder / "taken" / "log.csv").mkdir(parents=True)
    assert main(arguments) == 2
    out, error = capsys.readouterr()
    assert matches(f"podium: {message}\n\nHint: {hint}\n", error), error
    assert out == ""


def test_an_old_report_survives_bad_input(folder: Path):
    (folder / "log.csv").write_text(cell("reward", "nan"))
    (folder / "report.html").write_text("old")
    assert main(["compare", "log.csv", "--html", "report.html"]) == 2
    assert (folder / "report.html").read_text() == "old"


def test_a_file_that_may_not_be_read(folder: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]):
    def forbid(path: Path) -> bytes:
        raise PermissionError(13, "Permission denied")

    (folder / "log.csv").write_text(LOG)
    monkeypatch.setattr(Path, "read_bytes", forbid)
    assert main(["compare", "log.csv"]) == 2
    expected = "podium: log.csv cannot be read: Permission denied\n\nHint: check who may read it.\n"
    assert capsys.readouterr() == ("", expected)


@pytest.mark.parametrize(
    ("package", "file", "spec", "extra", "purpose"),
    [
        ("pyarrow", "log.parquet", "uniform", "parquet", "reading Parquet"),
        ("duckdb", "log.csv", "sql:'sms'", "duckdb", "a policy in SQL"),
        ("skops", "log.csv", "model.skops", "sklearn", "reading a .skops model"),
    ],
)
def test_a_package_that_is_not_installed(
    package: str,
    file: str,
    spec: str,
    extra: str,
    purpose: str,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
):
    (folder / file).write_bytes(GOOD_PARQUET if file.endswith("parquet") else LOG.encode())
    (folder / "model.skops").write_text("")
    monkeypatch.setitem(sys.modules, package, None)
    assert main(["compare", file, *policies(spec)]) == 2
    expected = f"podium: {package} is not installed; {purpose} needs it\n\nHint: run: pip install 'podium[{extra}]'\n"
    assert capsys.readouterr() == ("", expected)


@pytest.mark.platforms("linux")  # no other system has /dev/full
def test_a_disk_without_room_is_no_traceback(folder: Path):
    full = Path("/dev/full")
    (folder / "log.csv").write_text(LOG)
    command = [sys.executable, "-m", "podium", "compare", "log.csv"]
    with full.open("w") as out:
        done = subprocess.run(command, stdout=out, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 2
    assert done.stderr == "podium: cannot write the answer: No space left on device\n\nHint: free some disk space.\n"
