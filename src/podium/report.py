"""The answer as one self-contained HTML page, from the same tables as the terminal."""

from __future__ import annotations

import base64
import hashlib
import html
from pathlib import Path
from typing import TYPE_CHECKING

from podium.files import write_text

if TYPE_CHECKING:
    from podium.comparison import Comparison

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 62rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1.5rem 0 .5rem; }
caption { text-align: left; font-weight: 600; font-size: 1.15rem; padding-bottom: .4rem; }
th, td { padding: .3rem .9rem .3rem 0; border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
th { font-weight: 600; }
.left { text-align: left; }
.right { text-align: right; font-variant-numeric: tabular-nums; }
.table { overflow-x: auto; }
p { margin: .3rem 0; max-width: 46rem; }
.warning { border-left: .25rem solid #b45309; padding-left: .7rem; }
"""

CONTENT_SECURITY_POLICY = (
    "default-src 'none'; style-src 'sha256-"
    + base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()
    + "'; base-uri 'none'; form-action 'none'"
)


def write_report(result: Comparison, path: str | Path) -> Path:
    """Write the page; every label that comes from data is escaped."""
    return write_text(path, page(result))


def page(result: Comparison, *, command: str = "", source: str = "") -> str:
    """The whole page, with the command that gives the same numbers and the name of the file they come from."""
    title = headline(result)
    head = "".join(f"<p>{html.escape(line)}.</p>" for line in result.header())
    warnings = "".join(f'<p class="warning">Warning: {html.escape(w)}</p>' for w in result.warnings)
    tables = "".join(
        f'<div class="table">{table.html()}</div>' for table in (result.ranking_table(), result.pairs_table(every=True))
    )
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><title>{html.escape(title)}</title>'
        f'<meta name="viewport" content="width=device-width, initial-scale=1"><style>{STYLE}</style></head>'
        f"<body><main><h1>{html.escape(title)}</h1><p>{html.escape(summary(result))}</p>{warnings}{tables}"
        f"<h2>Method and data</h2>{head}"
        + (f"<p>File: {html.escape(source)}</p>" if source else "")
        + (f"<pre>{html.escape(command)}</pre>" if command else "")
        + "<p>LDE and DiM are scores for comparing policies, not estimates of their value.</p>"
        "</main></body></html>\n"
    )


def headline(result: Comparison) -> str:
    """Who ranks first, and who cannot be told apart from it."""
    rivals = [p.b for p in result.pairs if p.a == result.best and p.verdict == "cannot tell"]
    title = f"{result.best} ranks first of {len(result.policies)} policies"
    if not rivals:
        return title
    names = ", ".join(rivals[:3]) + (f" and {len(rivals) - 3} more" if len(rivals) > 3 else "")
    return f"{title}, but cannot be told apart from {names}"


def summary(result: Comparison) -> str:
    """One sentence on what was decided."""
    claims = [p for p in result.pairs if p.verdict != "cannot tell"]
    return f"{len(claims)} of {len(result.pairs)} pairs are decided; the others cannot be told apart from this log."
