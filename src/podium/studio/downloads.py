"""What can be taken home: the report, JSON, CSV that no spreadsheet takes for formulas, the command and the code."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from podium.studio.workspaces import Answer

FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n")


def safe_cell(value: Any) -> Any:
    """A text that a spreadsheet would take for a formula, made a text again by an apostrophe; numbers stay.

    >>> safe_cell("=1+1"), safe_cell(-0.5), safe_cell("new")
    ("'=1+1", -0.5, 'new')
    """
    return f"'{value}" if isinstance(value, str) and value.startswith(FORMULA) else value


def csv_text(header: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    content = io.StringIO(newline="")
    writer = csv.writer(content, lineterminator="\r\n")
    writer.writerow([safe_cell(h) for h in header])
    writer.writerows([safe_cell(x) for x in row] for row in rows)
    return content.getvalue()


def ranking_csv(result: Mapping[str, Any]) -> str:
    methods = list(result["policies"][0]["estimates"])
    keys = ["rank", "rank_low", "rank_high", "name", "score", "p_best"]
    rows = [[*(p[k] for k in keys), *(p["estimates"][m] for m in methods)] for p in result["policies"]]
    return csv_text([*keys, *methods], rows)


def pairs_csv(result: Mapping[str, Any]) -> str:
    keys = ["a", "b", "verdict", "difference", "low", "high", "p_better", "p_adjusted", "path"]
    rows = [[*(p[k] for k in keys), " ".join(p["reasons"])] for p in result["pairs"]]
    return csv_text([*keys, "reasons"], rows)


def download(answer: Answer, name: str) -> tuple[bytes, str] | None:
    """The content and type of a download, or None where there is none of this name."""
    result, question = answer.result, answer.question
    text = "text/plain; charset=utf-8"
    match name:
        case "report.html":
            return (answer.folder / "report.html").read_bytes(), "text/html; charset=utf-8"
        case "result.json":
            content, kind = json.dumps(result, indent=1, ensure_ascii=False) + "\n", "application/json"
        case "ranking.csv":
            content, kind = ranking_csv(result), "text/csv; charset=utf-8"
        case "pairs.csv":
            content, kind = pairs_csv(result), "text/csv; charset=utf-8"
        case "compare.sh":
            content, kind = question.command() + "\n", text
        case "compare.py":
            content, kind = question.code(), text
        case _:
            return None
    return content.encode("utf-8", errors="backslashreplace"), kind
