"""The page of an experiment: printed tables beside their reproduction, figures, deviations, in one index.html."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence

from podium.data.files import GENERATOR
from podium.experiments.printed import Entry, agreement, as_printed
from podium.outputs.display import Table

STYLE = """
:root { color-scheme: light dark; }
body { font: 16px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: 1.5rem 0 .5rem; }
caption { text-align: left; font-weight: 600; font-size: 1.15rem; padding-bottom: .4rem; }
th, td { padding: .3rem .9rem .3rem 0; border-bottom: 1px solid color-mix(in srgb, currentColor 20%, transparent); }
th { font-weight: 600; }
.left { text-align: left; }
.right { text-align: right; font-variant-numeric: tabular-nums; }
.table { overflow-x: auto; }
p { margin: .3rem 0; max-width: 46rem; }
.warning { border-left: .25rem solid #b45309; padding-left: .7rem; }
figure { margin: 1.5rem 0; }
figure img { width: 100%; height: auto; background: white; }
figure.small img { width: 26rem; max-width: 100%; }
figcaption { max-width: 46rem; }
.pair td { line-height: 1.35; vertical-align: top; }
.pair .z { opacity: .75; font-size: .85em; }
.pair .equal { font-weight: 600; }
code { font-size: .95em; }
li { max-width: 46rem; margin: .4rem 0; }
@media print { body { font-size: 11pt; } figure { break-inside: avoid; } }
"""


def page(title: str, parts: Iterable[str]) -> str:
    """A whole page from parts that are HTML already."""
    return (
        f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="generator" content="{GENERATOR}">'
        f"<title>{html.escape(title)}</title>"
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<style>{STYLE}</style></head><body><main><h1>{html.escape(title)}</h1>\n"
        + "\n".join(parts)
        + "\n</main></body></html>\n"
    )


def heading(text: str, level: int = 2) -> str:
    return f"<h{level}>{html.escape(text)}</h{level}>"


def paragraph(text: str) -> str:
    return f"<p>{html.escape(text)}</p>"


def figure(name: str, caption: str, small: bool = False) -> str:
    """A figure of the folder figures/, with the same picture as PNG behind it."""
    kind = ' class="small"' if small else ""
    return (
        f'<figure{kind}><a href="figures/{name}.png"><img src="figures/{name}.svg" alt="{html.escape(caption)}"></a>'
        f"<figcaption>{html.escape(caption)}</figcaption></figure>"
    )


def links(files: Sequence[str]) -> str:
    """Links to files beside the page."""
    return "<p>" + " · ".join(f'<a href="{html.escape(f)}">{html.escape(f)}</a>' for f in files) + "</p>"


def numbered(items: Iterable[tuple[str, str]]) -> str:
    lines = "".join(f"<li><strong>{html.escape(title)}.</strong> {html.escape(text)}</li>" for title, text in items)
    return f"<ol>{lines}</ol>"


def agreement_table(groups: Mapping[str, Sequence[Entry]]) -> Table:
    """How the entries of each group agree with the printed ones."""
    rows = []
    for label, entries in groups.items():
        a = agreement(entries)
        numbers = [f"{a['rms_z']:.2f}", f"{a['max_abs_z']:.2f}", f"{a['max_gap']:.5f}"]
        rows.append([label, str(a["entries"]), str(a["equal"]), *numbers])
    return Table(
        "Printed and reproduced",
        ["table", "entries", "equal as printed", "rms z", "largest |z|", "largest gap"],
        rows,
        "lrrrrr",
        notes=["z = (reproduced - printed) / (sqrt(2) standard error); about 1 in rms when both are samples."],
    )


def paired_table(title: str, first: str, entries: Sequence[Entry]) -> str:
    """A printed table in the paper's layout; each cell holds the printed number, the reproduced one, and z."""
    columns = list(dict.fromkeys(e.column for e in entries))
    rows = list(dict.fromkeys(e.row for e in entries))
    found = {(e.row, e.column): e for e in entries}
    head = "".join(f'<th scope="col" class="right">{html.escape(c)}</th>' for c in (first, *columns))
    body = "".join(
        f'<tr><th scope="row" class="right">{html.escape(row)}</th>'
        + "".join(f'<td class="right">{paired_cell(found[row, c])}</td>' for c in columns)
        + "</tr>"
        for row in rows
    )
    return (
        f'<div class="table pair"><table><caption>{html.escape(title)}</caption><thead><tr>{head}</tr></thead>'
        f"<tbody>{body}</tbody></table></div>"
    )


def paired_cell(entry: Entry) -> str:
    kind = ' class="equal"' if entry.is_equal else ""
    mark = " =" if entry.is_equal else ""
    ours = entry.printed if entry.is_equal else as_printed(entry.reproduced, entry.printed)
    return (
        f"{html.escape(entry.printed)}<br><span{kind}>{html.escape(ours)}{mark}</span>"
        f'<br><span class="z">z {entry.z:.2f}</span>'
    )
