"""The answer as one self-contained HTML page: no script, style, font or picture comes from elsewhere."""

from __future__ import annotations

import base64
import hashlib
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from podium.data.errors import count
from podium.data.files import GENERATOR, check_output, write_output
from podium.outputs.answer import answer
from podium.outputs.display import shorten
from podium.outputs.insights import Insights, insights_of
from podium.outputs.markup import Markup, data_block, tag
from podium.outputs.report import sections
from podium.outputs.report.groups import groups
from podium.verdicts.leaks import leak_warnings

if TYPE_CHECKING:
    from podium.comparison.result import Comparison

__all__ = ["CONTENT_SECURITY_POLICY", "headline", "page", "write_report"]

STYLE = files(__name__).joinpath("page.css").read_text(encoding="utf-8")
SCRIPT = files(__name__).joinpath("page.js").read_text(encoding="utf-8")


def digest(text: str) -> str:
    """A block's hash as a content security policy names it."""
    return "'sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() + "'"


CONTENT_SECURITY_POLICY = (
    f"default-src 'none'; style-src {digest(STYLE)}; script-src {digest(SCRIPT)}; base-uri 'none'; form-action 'none'"
)
"""What the page may do: run its own two constant blocks and nothing else. It holds for every report."""

SECTIONS = (
    sections.ranking, sections.pairs, groups, sections.trust, sections.states, sections.method, sections.data,
)  # fmt: skip
CONTENTS = {
    "ranking": "Ranking", "pairs": "Pairs", "groups": "Groups", "trust": "Trust", "states": "States",
    "method": "Method", "data": "Data", "reproduce": "Reproduce",
}  # fmt: skip


def write_report(result: Comparison, path: str | Path, *, overwrite: bool = False, **options: Any) -> Path:
    """Write the page, whole or not at all; `overwrite` also replaces a file that is not a report of podium."""
    check_output(path, overwrite=overwrite)
    return write_output(path, page(result, **options), overwrite=overwrite)


def page(
    result: Comparison, *, command: str = "", source: str = "", difference: float | None = None, question: str = ""
) -> str:
    """The report as text.

    Parameters
    ----------
    result : the comparison
    command : the command that made it, shown under "How to reproduce"
    source : the name of the file that the log came from
    difference : the smallest difference in reward that matters; None for a fifth of the rewards' standard deviation
    question : the question file that was answered, and its SHA-256
    """
    insights = insights_of(result, difference)
    verdict = answer(insights)
    main = [section(insights) for section in SECTIONS]
    head = tag(
        "head",
        tag("meta", charset="utf-8"),
        tag("meta", name="generator", content=GENERATOR),
        tag("meta", http_equiv="Content-Security-Policy", content=CONTENT_SECURITY_POLICY),
        tag("meta", name="viewport", content="width=device-width, initial-scale=1"),
        tag("meta", name="color-scheme", content="light dark"),
        tag("title", shorten(verdict.sentence, 140)),
        Markup(f"<style>{STYLE}</style>"),
    )
    links = [tag("li", tag("a", text, href=f"#{name}")) for name, text in contents_of(insights).items()]
    contents = tag("ul", links)
    body = tag(
        "body",
        tag("a", "Skip to the ranking", href="#ranking", class_="skip"),
        tag("header", masthead(insights), tag("h1", verdict.sentence),
            [tag("p", line, class_="deck") for line in verdict.details], leaks(insights), contradiction(insights),
            tag("nav", contents, aria_label="Contents")),
        tag("main", main, sections.reproduce(insights, command, source, question), id="main"),
        tag("footer", tag("p", "Made by podium. Probabilities hold if the assumptions do.")),
        tag("div", id="tip", hidden=True, aria_hidden="true"),
        data_block("data-block", sections.pair_data(insights)),
        Markup(f"<script>{SCRIPT}</script>"),
    )  # fmt: skip
    return "<!doctype html>\n" + tag("html", head, body, lang="en") + "\n"


def contents_of(insights: Insights) -> dict[str, str]:
    """The sections that the page has."""
    return {name: text for name, text in CONTENTS.items() if name != "groups" or insights.result.groups}


def headline(result: Comparison, difference: float | None = None) -> str:
    """The answer in one sentence, as plain text."""
    return answer(insights_of(result, difference)).sentence


def masthead(insights: Insights) -> Markup:
    """What was compared, in one line."""
    result = insights.result
    log = result.log
    parts = [
        f"{len(result.policies):,} policies",
        count(len(log), "logged row"),
        count(log.n_states, "state"),
        count(log.n_actions, "action"),
        *(["estimated propensities"] if log.knows == "estimated" else []),
        f"level {result.level_text}",
        f"engine {result.settings['engine']}",
    ]
    return tag("p", tag("b", "podium"), " " + " · ".join(parts), class_="masthead")


def leaks(insights: Insights) -> list[Markup]:
    """Columns that were probably recorded after the action come first, since no verdict can be given with them."""
    warnings = leak_warnings(insights.result.warnings)
    return [tag("p", "Warning: " + shorten(str(warning), 1000), class_="warning") for warning in warnings]


def contradiction(insights: Insights) -> Markup | None:
    """A verdict that contradicts the ranking comes first."""
    pair = next((p for p in insights.result.pairs if p.verdict == "worse"), None)
    if pair is None:
        return None
    a, b = insights.short[pair.a], insights.short[pair.b]
    return tag("p", f"Warning: {a} ranks above {b}, but is judged worse.", class_="warning")
