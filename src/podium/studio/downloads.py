"""What can be taken home: the report, JSON, CSV that no spreadsheet takes for formulas, the command and the code."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from podium.data.spreadsheets import csv_text
from podium.studio.workspaces import Answer

END = "\r\n"  # as spreadsheets write it


def ranking_csv(result: Mapping[str, Any]) -> str:
    methods = list(result["policies"][0]["estimates"])
    keys = ["rank", "rank_low", "rank_high", "name", "score", "p_best"]
    rows = [[*(p[k] for k in keys), *(p["estimates"][m] for m in methods)] for p in result["policies"]]
    return csv_text([*keys, *methods], rows, end=END)


def pairs_csv(result: Mapping[str, Any]) -> str:
    keys = ["a", "b", "verdict", "difference", "low", "high", "p_better", "p_adjusted", "path"]
    keys += ["adjusted_low", "adjusted_high", "adjusted_level"]
    rows = [[*(p[k] for k in keys), " ".join(p["reasons"])] for p in result["pairs"]]
    return csv_text([*keys, "reasons"], rows, end=END)


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
