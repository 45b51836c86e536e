"""The report: what its one sentence says, that data stays data, and that it never bursts."""

from __future__ import annotations

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from samples import adjusting, logged_only, sample

import podium
from podium.comparison.pair import decided
from podium.outputs.answer import answer
from podium.outputs.insights import Insights
from podium.outputs.report import CONTENT_SECURITY_POLICY, headline, page

HOSTILE = [
    "<script>alert(1)</script>",
    "</script><img src=x onerror=alert(2)>",
    '"><svg onload=alert(3)>',
    "' onfocus='alert(4)",
    "<!--",
    "]]>&lt;b&gt;",
    "\u202egnp.exe",
    "שלום עולם",
    "👩‍🔬🎉",
    "${alert(5)}`\\u003c",
    "x" * 10_000,
]


class Outline(HTMLParser):
    """The tags and attributes of a page, and its text outside scripts and styles."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.text = ""
        self.blocks: list[str] = []
        self.stack: list[str] = []
        self.feed(text)
        self.close()
        assert self.stack == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in ("meta", "br"):
            self.stack.append(tag)
        if tag in ("script", "style"):
            self.blocks.append("")

    def handle_endtag(self, tag: str) -> None:
        assert self.stack.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.stack and self.stack[-1] in ("script", "style"):
            self.blocks[-1] += data
        else:
            self.text += data


def two(gap: float, rows: int = 400, **options: Any) -> podium.Comparison:
    """ "New" plays b, which pays `gap` more than the a of "Current"; actions were chosen by a coin."""
    rng = np.random.default_rng(3)
    actions = rng.choice(["a", "b"], rows)
    rewards = gap * (actions == "b") + rng.normal(size=rows)
    log = podium.Log(rng.integers(0, 20, rows), actions, rewards, propensities=np.full(rows, 0.5))
    return podium.compare(log, {"Current": "constant:a", "New": "constant:b"}, **options)


# --- what decides is what is shown -----------------------------------------------------------------------------


@pytest.mark.parametrize("options", [{}, {"joint": True}, {"look": "2/16"}, {"count": 2, "look": "1/400"}])
def test_verdict_interval_and_probability_never_contradict_each_other(options: dict[str, Any]) -> None:
    result = adjusting(**options)
    assert any(decided(p.interval) != decided(p.adjusted) for p in result.pairs) == result.adjusts
    insights = Insights(result)
    for p in result.pairs:
        assert (p.verdict != "cannot tell") == decided(insights.interval(p))
        assert p.verdict != "better" or p.p_better >= 0.975
        assert bool(p.reasons) == (p.verdict == "cannot tell")


def test_where_the_rule_of_claims_adjusts_the_adjusted_interval_is_shown() -> None:
    result = adjusting()
    assert result.adjusts
    note = "The adjusted interval decides: a claim needs one that excludes 0. It allows for 28 pairs."
    table = result.pairs_table(every=True)
    assert table.columns[-1] == "adjusted interval"
    assert note in table.notes
    text = page(result)
    data = json.loads(re.search(r'id="data-block"[^>]*>(.*?)</script>', text, re.S)[1])  # type: ignore[index]
    assert data["interval"] == "adjusted interval"
    interval, verdict = data["fields"].index("interval"), data["fields"].index("verdict")
    for entry in data["pairs"]:
        low, high = entry[interval]
        assert (low > 0 or high < 0) == (entry[verdict] < 2)
    assert f"0 of 28 pairs decided at level 95%; {result.settings.multiplicity}.".replace("<", "&lt;") in text
    assert f"<figcaption>Difference to {result.best}, with adjusted interval" in text
    assert text.count(note) == 2  # below the chart, below the table
    rows = [row for row in re.findall(r"<tr>.*?</tr>", text) if 'class="verdict' in row]
    assert len(rows) == len(result.pairs)
    for row in rows:
        low, high = re.findall(r"\[(\S+), (\S+)\]", row)[1]
        assert "cannot tell" in row
        assert float(low) <= 0 <= float(high)
    plain = adjusting(count=2)
    assert not plain.adjusts
    assert "adjusted interval" not in page(plain) + plain.text()


# --- the sentence ----------------------------------------------------------------------------------------------


def test_a_clear_winner() -> None:
    assert answer(Insights(two(1.0))).sentence == "New is better than Current (>99.9% sure)."


def test_an_open_pair_says_how_many_rows_would_settle_it() -> None:
    result = two(0.0, rows=60)
    insights = Insights(result, difference=0.3)
    found = re.fullmatch(
        r"(\w+) ranks first but cannot be told apart from (\w+): log about ([\d,]+) more rows\.",
        answer(insights).sentence,
    )
    assert found is not None
    planned = podium.plan(result.log, {"Current": "constant:a", "New": "constant:b"}, difference=0.3).pairs[0]
    assert planned.rows_80 is not None
    more = int(found[3].replace(",", ""))
    assert planned.rows_80 - 60 <= more <= 1.1 * (planned.rows_80 - 60) + 1


def test_a_difference_too_small_to_matter_needs_no_more_rows() -> None:
    sentence = answer(Insights(two(0.0), difference=5.0)).sentence
    reach = float(re.findall(r"the difference is likely below ([\d.]+)\.", sentence)[0])
    interval = two(0.0).pairs[0].interval
    assert interval is not None
    assert reach == pytest.approx(max(abs(interval.low), abs(interval.high)), rel=0.06)


def test_the_policy_that_made_the_log_is_what_others_are_held_against() -> None:
    log, policies = sample(rows=300, count=3, effect=1.5)
    result = podium.compare(log, {**policies, "now": "logged"})
    said = answer(result.insights)
    assert result.insights.reference == "now"
    assert f"{result.best} is better than now" in said.sentence
    assert said.details[0].startswith("The log was made by now; ")


def test_costs_are_compared_the_other_way_round() -> None:
    assert answer(Insights(two(1.0, lower_is_better=True))).sentence == "Current is better than New (>99.9% sure)."


def test_no_spread_means_no_plan() -> None:
    log = podium.Log([0, 0, 1], ["a", "b", "a"], [1.0, 1.0, 1.0])
    insights = Insights(podium.compare(log, {"x": "constant:a", "y": "uniform"}))
    assert insights.matters is None
    assert insights.plan is None
    assert "cannot be told apart" in answer(insights).sentence


# --- what it shows -----------------------------------------------------------------------------------------------


def test_per_state_differences_average_to_the_difference_of_scores() -> None:
    log, policies = sample(rows=200, distinct=30, effect=1.0)
    result = podium.compare(log, policies, estimator="DRE")
    view = result.insights.states("p0", "p2")
    scores = result.estimates
    assert view.rows.sum() == 200
    gap = float(view.differences @ view.rows) / 200
    assert gap == pytest.approx(scores["p0"]["DRE"] - scores["p2"]["DRE"])  # type: ignore[operator]
    ahead, behind = result.insights.state_shares["p2", "p0"]
    assert ahead == pytest.approx(np.mean(view.differences < 0))
    assert behind == pytest.approx(np.mean(view.differences > 0))


def test_wanted_actions_are_averages_of_the_policies() -> None:
    log, policies = sample(rows=50)
    use = podium.compare(log, {**policies, "one": "constant:1"}).insights.actions
    assert use.labels == ("0", "1", "2")
    assert use.wanted["one"] == pytest.approx([0, 1, 0])
    assert use.wanted["p1"] == pytest.approx(policies["p1"].mean(axis=0))
    assert use.logged.sum() == pytest.approx(1)


def test_the_page_holds_what_the_result_holds() -> None:
    result = two(0.4)
    text = page(result, command="podium compare 'my log.csv'", source="my log.csv")
    outline = Outline(text)
    for part in ("New", "Current", "podium compare 'my log.csv'", result.log.digest, podium.__version__):
        assert part in outline.text
    [data] = [json.loads(b) for b in outline.blocks if b.startswith("{")]
    assert data["names"] == result.ranking
    pair = dict(zip(data["fields"], data["pairs"][0], strict=True))
    assert pair["difference"] == pytest.approx(result.pairs[0].difference, rel=1e-3)
    assert page(result) == page(result)
    assert f"<h1>{headline(result)}</h1>".replace(">9", "&gt;9") in text


@pytest.mark.parametrize("knows", ["full", "logged", "none"])
@pytest.mark.parametrize("full", [True, False])
def test_whatever_the_log_knows_there_is_a_page(knows: str, full: bool) -> None:
    log, policies = sample(rows=40, knows=knows, distinct=6, text=True)
    Outline(page(podium.compare(log, policies if full else logged_only(log, policies))))


@pytest.mark.parametrize("size", [1e-170, 1e-9, 1e12, 1e90])
def test_huge_and_tiny_rewards_have_a_page(size: float) -> None:
    log, policies = sample(rows=40)
    scaled = podium.Log(log.states, log.actions, log.rewards * size, behavior=log.behavior, action_space=(0, 1, 2))
    text = Outline(page(podium.compare(scaled, policies))).text
    assert "What would make it sure" in text
    assert "nan" not in text.split()
    assert "inf" not in text.split()


def test_many_policies_are_cut_to_what_a_page_can_hold() -> None:
    log, policies = sample(rows=60, count=70)
    result = podium.compare(log, logged_only(log, policies))
    text = page(result)
    assert len(text) < 2_000_000
    assert len(result.insights.pairs) == 50 * 49 // 2
    assert f"{70 * 69 // 2 - 50 * 49 // 2:,} pairs of lower ranks are in the JSON output." in text


def test_a_bad_difference_is_refused_and_nothing_is_written(tmp_path: Path) -> None:
    with pytest.raises(podium.PodiumError, match=r"difference must be a positive number; it is -1\.0"):
        two(1.0).report(tmp_path / "report.html", difference=-1.0)
    assert list(tmp_path.iterdir()) == []


# --- data stays data -----------------------------------------------------------------------------------------------


def hostile() -> podium.Comparison:
    """Markup in every name, action, state and column."""
    rng = np.random.default_rng(0)
    rows = 60
    which = rng.integers(0, len(HOSTILE), rows)
    columns: dict[str, Any] = {f"<b>{HOSTILE[0]}": [HOSTILE[k] for k in which]}
    columns |= {"action": [HOSTILE[k] for k in rng.integers(0, len(HOSTILE), rows)], "reward": rng.normal(size=rows)}
    log = podium.Log.from_columns({name: np.array(values, dtype=object) for name, values in columns.items()})
    policies = {name: rng.random(rows) for name in HOSTILE}
    return podium.compare(log, policies)


def test_markup_in_labels_stays_text() -> None:
    result = hostile()
    text = page(result, command=HOSTILE[1], source=HOSTILE[2])
    outline = Outline(text)
    tags = [tag for tag, _ in outline.tags]
    assert tags.count("script") == 2
    assert tags.count("style") == 1
    assert not {"img", "iframe", "object", "link", "base", "form"} & set(tags)
    for tag, attributes in outline.tags:
        assert not any(name.startswith("on") or name in ("style", "src") for name in attributes), tag
    assert "\u202e" not in text
    assert HOSTILE[0] in outline.text
    assert len(text) < 1_000_000


def test_the_data_block_cannot_be_left() -> None:
    blocks = re.findall(r'<script type="application/json" id="data-block">(.*?)</script>', page(hostile()), re.DOTALL)
    assert len(blocks) == 1
    assert not set("<>&") & set(blocks[0])
    assert HOSTILE[0] in json.loads(blocks[0])["names"]


def test_the_policy_names_the_page_s_own_blocks_and_nothing_else() -> None:
    text = page(hostile())
    outline = Outline(text)
    assert CONTENT_SECURITY_POLICY.startswith("default-src 'none'; ")
    assert "unsafe" not in CONTENT_SECURITY_POLICY
    hashes = set(re.findall(r"'sha256-(.*?)'", CONTENT_SECURITY_POLICY))
    constant = [b for b in outline.blocks if not b.startswith("{")]
    assert {base64.b64encode(hashlib.sha256(b.encode()).digest()).decode() for b in constant} == hashes
    metas = [a for tag, a in outline.tags if tag == "meta" and a.get("http-equiv") == "Content-Security-Policy"]
    assert [a["content"] for a in metas] == [CONTENT_SECURITY_POLICY]


# --- notebooks and the log's hash ------------------------------------------------------------------------------------


def test_notebooks_show_tables_with_labels_escaped() -> None:
    result = hostile()
    shown = [result.log, result, result.insights.diagnosis, result.insights.plan]
    for value in shown:
        outline = Outline(value._repr_html_())  # type: ignore[union-attr]
        tags = {tag for tag, _ in outline.tags}
        assert "table" in tags
        assert not {"script", "img", "svg", "b"} & tags


def test_the_hash_of_a_log_is_that_of_its_content(tmp_path: Path) -> None:
    log, _ = sample(rows=30, text=True)
    log.to_frame().to_csv(tmp_path / "log.csv", index=False)
    log.to_frame().to_parquet(tmp_path / "log.parquet")
    read = [podium.read_log(tmp_path / name).digest for name in ("log.csv", "log.parquet")]
    assert read[0] == read[1]
    rewards = log.rewards.copy()
    rewards[3] += 1e-9
    options: dict[str, Any] = {"behavior": log.behavior, "action_space": log.action_space}
    same = podium.Log(log.states, log.actions, log.rewards, **options)
    other = podium.Log(log.states, log.actions, rewards, **options)
    assert same.digest == log.digest != other.digest


# --- large logs -----------------------------------------------------------------------------------------------------


def large_logs(folder: Path) -> tuple[podium.Log, Any]:
    """One log of 21,000 rows in memory, and as a file that is scanned."""
    import pyarrow as pa
    from pyarrow import parquet

    rng = np.random.default_rng(8)
    state, action = rng.integers(0, 40, 21_000), rng.choice(3, 21_000, p=[0.5, 0.3, 0.2])
    table = {
        "state": state,
        "action": np.array(["a", "b", "c"])[action],
        "reward": 0.1 * (action == 1) + rng.random(21_000).round(4),
        "propensity": np.array([0.5, 0.3, 0.2])[action],
    }
    parquet.write_table(pa.table(table), folder / "log.parquet")
    log = podium.read_log(folder / "log.parquet", state="state")
    return log, podium.scan_log(folder / "log.parquet", state="state", engine="duckdb")


@pytest.mark.slow
def test_a_scanned_log_shows_what_the_same_log_in_memory_shows(tmp_path: Path) -> None:
    behavior = {"a": 0.5, "b": 0.3, "c": 0.2}
    made_it = dict.fromkeys(range(40), behavior)
    policies = {"now": made_it, "b": "constant:b", "u": "uniform"}
    held, scanned = (podium.compare(log, policies) for log in large_logs(tmp_path))
    for seen in (held.insights, scanned.insights):
        assert seen.reference == "now"
        assert seen.rival == "now"
    assert headline(scanned) == headline(held)
    assert scanned.insights.matters == held.insights.matters
    for name, wanted in held.insights.actions.wanted.items():
        np.testing.assert_allclose(scanned.insights.actions.wanted[name], wanted)
    for one, other in zip(held.insights.diagnosis.coverage, scanned.insights.diagnosis.coverage, strict=True):
        assert one.ess == pytest.approx(other.ess)
    assert scanned.insights.state_shares == held.insights.state_shares
    there, here = scanned.insights.states("b", "now"), held.insights.states("b", "now")
    assert there.labels == here.labels == [*range(40)]
    np.testing.assert_allclose(there.differences, here.differences)
    whole = held.basis.units * held.basis.main.difference[1, 0]  # type: ignore[union-attr]
    assert there.differences @ there.rows / there.rows.sum() == pytest.approx(whole, abs=0.02)  # of 20,000 rows


@pytest.mark.slow
def test_the_page_of_a_scanned_log_differs_only_in_how_it_was_read(tmp_path: Path) -> None:
    policies = {"b": "constant:b", "u": "uniform", "a": "constant:a"}
    held, scanned = (podium.compare(log, policies, baseline="state") for log in large_logs(tmp_path))
    shown, same = Outline(page(scanned)).text, Outline(page(held)).text
    assert "(duckdb), 21,000 rows; no digest" in shown
    assert held.log.digest in same  # type: ignore[union-attr]
    for part in ("State by state", "effective rows", "What would make it sure"):
        assert part in shown
        assert part in same
    inside = slice(shown.index("Can it be trusted?"), shown.index("Method and assumptions"))
    assert shown[inside] == same[same.index("Can it be trusted?") : same.index("Method and assumptions")]


def test_estimated_propensities_are_labelled_and_examined() -> None:
    log, policies = sample(300, knows="none")
    result = podium.compare(log, {**policies, "now": "logged"}, behavior="estimate:frequencies")
    text = Outline(page(result)).text
    assert "estimated propensities" in text
    assert "learned from this log, not known" in text
    assert "effective rows" in text
    assert "Calibration of the estimate" in text
    assert "behavior='estimate:frequencies'" in text
    assert "estimated propensities" in result._repr_html_()
    assert "Estimated propensities" in result.insights.diagnosis._repr_html_()


def test_one_state_is_not_drawn() -> None:
    rng = np.random.default_rng(0)
    log = podium.Log(np.zeros(60), rng.integers(0, 2, 60), rng.random(60))
    assert "The log has one state" in Outline(page(podium.compare(log, {"a": "constant:0", "b": "constant:1"}))).text
