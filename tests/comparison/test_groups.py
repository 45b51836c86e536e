"""Comparison by group: which rows make a group, what is said of each, and what silences it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import podium
from podium.command.cli import main
from podium.comparison.groups import group_claims
from podium.data.errors import PodiumError

POLICIES = {"new": "constant:1", "old": "constant:0"}
EFFECTS = {"ios": 1.2, "tv": 1.0, "web": 0.9, "xbox": -1.5}


def table(rows: int = 400, seed: int = 0, **more: Any) -> dict[str, Any]:
    """A randomized log in which the new policy is better but on one device."""
    rng = np.random.default_rng(seed)
    device = rng.choice([*EFFECTS], size=rows)
    action, x = rng.integers(2, size=rows), rng.normal(size=rows)
    effect = np.array([EFFECTS[d] for d in device])
    reward = 0.3 * x + (action - 0.5) * effect + rng.normal(size=rows)
    columns = {"x": x, "device": device.astype(object), "age": rng.uniform(20, 80, rows), "action": action}
    return {**columns, "reward": reward, "propensity": np.full(rows, 0.5), **more}


def log_of(state: Any = "x", rows: int = 400, seed: int = 0, **more: Any) -> podium.Log:
    return podium.Log.from_frame(table(rows, seed, **more), state=state)


def refused(what: str, hint: str, **options: Any) -> None:
    log = options.pop("log", None) or log_of()
    with pytest.raises(PodiumError) as error:
        podium.compare(log, POLICIES, **options)
    assert (error.value.message, error.value.hint) == (what, hint)


@pytest.mark.parametrize("state", ["x", ["x", "device"]])
@pytest.mark.parametrize("verdicts", [None, "gated", "doubly robust"])
def test_harm_in_one_group_is_found_while_the_average_is_positive(state: Any, verdicts: str | None) -> None:
    result = podium.compare(log_of(state), POLICIES, by="device", verdicts=verdicts)
    assert result.pair("new", "old").difference > 0
    found = {g.value: g for g in result.groups}
    assert [found[name].verdict for name in EFFECTS] == ["better", "better", "better", "worse"]
    assert sum(g.rows for g in result.groups) == 400
    for name, g in found.items():
        assert abs(g.difference - EFFECTS[name]) < 3 * (g.std_error or 0)
    harm = found["xbox"]
    assert f"it is worse where device is xbox ({harm.difference:.4f}" in " ".join(result.warnings)


def test_groups_change_nothing_else() -> None:
    plain, cut = podium.compare(log_of(), POLICIES), podium.compare(log_of(), POLICIES, by=["device", "age"])
    one, other = plain.to_dict(), cut.to_dict()
    assert "groups" not in one
    assert (one["pairs"], one["policies"]) == (other["pairs"], other["policies"])
    assert other["settings"]["by"] == ["device", "age"]
    assert cut.basis.options.as_python() == "podium.compare(log, policies, by=['device', 'age'])"


def test_the_groups_of_json_and_of_frames() -> None:
    result = podium.compare(log_of(), POLICIES, by=("device", "age:40,65"))
    told = json.loads(json.dumps(result.to_dict(), allow_nan=False))["groups"]
    assert [*told[0]] == [
        "by", "value", "rows", "a", "b", "difference", "std_error", "low", "high", "p_better", "p_adjusted",
        "verdict", "path", "reasons", "reason_facts",
    ]  # fmt: skip
    assert [g["value"] for g in told] == [*EFFECTS, "below 40", "40 to below 65", "65 and above"]
    for g in told:
        assert (g["verdict"] != "cannot tell") == (g["p_adjusted"] <= 0.05)
        assert bool(g["reasons"]) == (g["verdict"] == "cannot tell")
    frame = result.to_frame("groups")
    assert frame["difference"].tolist() == [g["difference"] for g in told]
    assert len(result.to_frame("pairs")) == 1
    assert result.to_frame("ranking").equals(result.to_frame("pandas"))
    with pytest.raises(PodiumError, match="the comparison has no groups"):
        podium.compare(log_of(), POLICIES).to_frame("groups")


def test_one_group_of_all_rows_but_few_is_near_the_whole() -> None:
    """A cut that leaves next to nobody out gives the difference of the whole."""
    log = log_of(flag=np.where(np.arange(400) < 390, "yes", "no").astype(object))
    result = podium.compare(log, POLICIES, by="flag")
    no, yes = result.groups
    whole = result.pairs[0]
    assert abs(yes.difference - whole.difference) < 0.5 * (whole.std_error or 0)
    assert no.verdict == "cannot tell"
    assert no.reasons == ("The group has 10 rows, and a claim needs 20",)
    assert no.interval is None


def test_rows_without_a_value_are_a_group_and_rare_values_are_put_together() -> None:
    rng = np.random.default_rng(5)
    city = rng.choice(["a", "b"], size=400).astype(object)
    city[:30] = None
    city[30:45] = [f"village {n}" for n in range(15)]
    result = podium.compare(log_of(city=city), POLICIES, by="city")
    assert [g.value for g in result.groups] == ["a", "b", "15 rare values", "missing"]
    assert [g.rows for g in result.groups][2:] == [15, 30]
    assert "Groups by city: 15 values with fewer than 20 rows each are put together" in result.settings.notes


def test_numbers_with_few_values_are_values() -> None:
    result = podium.compare(log_of(arm=np.arange(400) % 3), POLICIES, by="arm")
    assert [g.value for g in result.groups] == ["0", "1", "2"]
    quartiles = podium.compare(log_of(), POLICIES, by="age").groups
    assert [g.rows for g in quartiles] == pytest.approx([100] * 4, abs=1)


def test_group_columns_are_refused_by_name() -> None:
    every = "the columns are x, device, age, action, reward, propensity."
    refused("the log has no column 'devise' to group by", f"did you mean 'device'? {every}", by="devise")
    refused("the log has no column 'agee' to group by", f"did you mean 'age'? {every}", by="agee:40")
    refused(
        "the cuts of column 'age' must be ascending numbers; they are '65,40'",
        'write --by "age:40,65" for below 40, 40 to below 65, and 65 and above.',
        by="age:65,40",
    )
    refused(
        "column 'reward' cannot make groups: it is the reward, which depends on the action that was chosen",
        "group by a column that is known before the action.",
        by="reward",
    )
    refused("by names 'age' twice", "name each column once.", by=["age", "age"])
    refused("by must be a list of texts; it is 3", "give by as a list such as ['a', 'b'].", by=3)
    refused(
        "verdicts by 'paired t' have no groups",
        'leave verdicts out, or use "posterior", "gated" or "doubly robust".',
        by="age",
        verdicts="paired t",
    )
    refused(
        "column 'device' cannot be cut at numbers: it holds 'ios'",
        "write --by device for one group per value.",
        by="device:3",
    )


def test_columns_that_make_no_groups_are_refused() -> None:
    fewer = "group by a column with fewer values, or cut numbers: --by COLUMN:40,65."
    refused(
        "column 'site' makes no groups: every row has the same value, 'main'",
        "leave it out, or group by another column.",
        by="site",
        log=log_of(site=np.full(400, "main", dtype=object)),
    )
    ids = np.array([f"id {n}" for n in range(400)], dtype=object)
    refused("column 'who' makes no groups: 400 values, none with 20 rows", fewer, by="who", log=log_of(who=ids))
    many = np.array([f"v{n % 30:02d}" for n in range(900)], dtype=object)
    refused(
        "column 'many' makes 30 groups, and podium compares up to 20", fewer, by="many", log=log_of(rows=900, many=many)
    )
    refused(
        "the cut 200 of column 'age' leaves no row on one side: its numbers are 20.1634 to 79.9768",
        "give cuts between them.",
        by="age:40,200",
        log=log_of(age=np.linspace(20.1634, 79.9768, 400)),
    )


def test_what_silences_a_pair_or_a_column_silences_groups() -> None:
    rng = np.random.default_rng(1)
    data = table()
    after = np.where(rng.random(400) < 0.9, data["action"], 1 - data["action"])
    data["status"] = np.where(after == 1, "seen", "not seen").astype(object)
    by_status = podium.compare(podium.Log.from_frame(data, state="x"), POLICIES, by="status").groups
    assert {g.reasons for g in by_status} == {
        (
            "Column 'status' is related to the logged action beyond the propensities, so it may have been recorded "
            "after the action: groups by it show the effect of actions, not for whom a policy is better",
        )
    }
    leaked = podium.compare(podium.Log.from_frame(data, state=["x", "status"]), POLICIES, by="device")
    assert {g.reasons for g in leaked.groups} == {leaked.pairs[0].reasons}
    assert {(g.verdict, g.p_better, g.interval) for g in leaked.groups} == {("cannot tell", 0.5, None)}


def test_p_above_and_the_turned_group() -> None:
    result = podium.compare(log_of(), POLICIES, by="device")
    for g in result.groups:
        assert g.p_above() == pytest.approx(g.p_better)
        assert g.reversed().p_above(0.3) == pytest.approx(1 - g.p_above(-0.3))
        assert g.p_above(-100) == pytest.approx(1, abs=1e-6)
        assert g.reversed().reversed() == g
    costs = podium.compare(log_of(), POLICIES, by="device", lower_is_better=True).groups
    first = {g.value: g if g.a == "new" else g.reversed() for g in costs}
    for g in result.groups:
        own = g if g.a == "new" else g.reversed()
        assert first[g.value].p_above(0.2) == pytest.approx(own.p_above(0.2))
        assert first[g.value].p_better == pytest.approx(1 - own.p_better)


def test_a_claim_in_every_group() -> None:
    """Every group must claim by itself; one that is harmed turns the answer round."""
    result = podium.compare(log_of(), POLICIES, by=["device", "age"])
    harmed = group_claims(result.groups, "new", "old", 0.1, by="device")
    assert (harmed.verdict, harmed.weakest.value, harmed.holds) == ("the opposite holds", "xbox", False)
    wide = group_claims(result.groups, "new", "old", 10.0)
    assert (wide.verdict, wide.holds, wide.reasons) == ("holds", True, ())
    assert len(wide.groups) == 8
    nearly = group_claims(result.groups, "new", "old", 1.6, by="device")
    assert nearly.verdict == "cannot tell"
    assert nearly.reasons[0].startswith("device xbox: A probability between 0.025 and 0.975 leaves it open at level")
    with pytest.raises(PodiumError, match="the comparison has no groups by 'devise'"):
        group_claims(result.groups, "new", "old", 0.1, by="devise")
    with pytest.raises(PodiumError, match="no pair 'new' against 'nobody'"):
        group_claims(result.groups, "new", "nobody", 0.1)


def test_a_group_that_is_silent_leaves_the_claim_open() -> None:
    log = log_of(flag=np.where(np.arange(400) < 390, "yes", "no").astype(object))
    answer = group_claims(podium.compare(log, POLICIES, by="flag").groups, "new", "old", 50.0)
    assert answer.verdict == "cannot tell"
    assert answer.reasons == ("flag no: The group has 10 rows, and a claim needs 20",)


def test_known_costs_move_every_group_by_what_it_costs_there() -> None:
    log = log_of()
    plain, priced = (podium.compare(log, POLICIES, by="device", cost=c) for c in (None, {1: 0.25}))
    before = {g.value: g if g.a == "new" else g.reversed() for g in plain.groups}
    for g in (g if g.a == "new" else g.reversed() for g in priced.groups):
        assert g.difference == pytest.approx(before[g.value].difference - 0.25)


def test_looks_and_joint_claims_are_stricter() -> None:
    log = log_of(rows=200, seed=3)
    usual, joint, early = (
        podium.compare(log, POLICIES, by="device", **options).groups
        for options in ({}, {"joint": True}, {"look": "1/8"})
    )
    assert all(j.p_adjusted >= u.p_adjusted for u, j in zip(usual, joint, strict=True))
    assert all(e.p_adjusted >= u.p_adjusted for u, e in zip(usual, early, strict=True))
    assert all(e.claim_level > u.claim_level for u, e in zip(usual, early, strict=True))


def test_policies_known_at_logged_actions_have_groups() -> None:
    data = table()
    data |= {"pi_new": (data["action"] == 1) * 0.8 + 0.1, "pi_old": (data["action"] == 0) * 0.8 + 0.1}
    result = podium.compare(podium.Log.from_frame(data, state="x"), by="device")
    assert result.settings.verdicts == "gated"
    found = {g.value: g if g.a == "new" else g.reversed() for g in result.groups}
    assert found["xbox"].difference < 0 < found["ios"].difference


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_large_logs_take_the_sample_or_every_row(tmp_path: Path, engine: str) -> None:
    import pandas as pd

    path = tmp_path / "log.parquet"
    pd.DataFrame(table(rows=3000)).to_parquet(path)
    log = podium.scan_log(path, state="x", engine=engine)
    result = podium.compare(log, POLICIES, by="device", sample_rows=600)
    assert sum(g.rows for g in result.groups) == 3000
    assert [g.verdict for g in sorted(result.groups, key=lambda g: g.value)] == ["better", "better", "better", "worse"]
    assert "The groups by device come from the sample: values that it lacks are in no group" in result.settings.notes
    every = podium.compare(log, POLICIES, by="device", sample_rows=600, verdicts="doubly robust")
    memory = podium.compare(log_of(rows=3000), POLICIES, by="device", sample_rows=600, verdicts="doubly robust")
    assert [g.difference for g in every.groups] == pytest.approx([g.difference for g in memory.groups], rel=1e-9)


def test_long_logs_are_judged_in_blocks() -> None:
    result = podium.compare(log_of(rows=2600, rare=rare_flag(2600)), POLICIES, by=["device", "rare"])
    found = {g.value: g for g in result.groups}
    assert [found[name].verdict for name in EFFECTS] == ["better", "better", "better", "worse"]
    assert found["yes"].reasons[0].startswith(("The group has", "A log of this size is judged in blocks", "The inter"))


def rare_flag(rows: int) -> Any:
    return np.where(np.arange(rows) % 100 == 0, "yes", "no").astype(object)


def test_other_kinds_of_logs_have_no_groups() -> None:
    from podium import continuous, episodes

    doses = continuous.ContinuousLog(np.zeros(50), np.linspace(0, 1, 50), np.linspace(0, 1, 50))
    with pytest.raises(PodiumError, match=r"groups \(by\) are not available for continuous actions"):
        doses.compare({"low": 0.2, "high": 0.8}, by="x")
    steps = [(np.zeros((3, 1)), np.zeros((3, 1)), np.ones(3)) for _ in range(4)]
    with pytest.raises(PodiumError, match=r"groups \(by\) are not available for episodes"):
        episodes.compare(steps, {"a": lambda s: s, "b": lambda s: 0 * s}, bounds=(-1, 1), by="x")


def test_the_command_shows_groups(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pandas as pd

    path, page = tmp_path / "log.csv", tmp_path / "page.html"
    pd.DataFrame(table()).to_csv(path, index=False)
    asked = ["compare", str(path), "--state", "x", "--policy", "new=constant:1", "--policy", "old=constant:0"]
    assert main([*asked, "--by", "device", "--by", "age:40,65", "--html", str(page)]) == 0
    shown = capsys.readouterr().out
    assert "Groups: new against old" in shown
    assert "device xbox" in shown
    html = page.read_text(encoding="utf-8")
    assert 'href="#groups"' in html
    assert "new against old by device, with 95% intervals." in html
    assert main([*asked, "--by", "device", "--json"]) == 0
    assert len(json.loads(capsys.readouterr().out)["groups"]) == 4
    assert main([*asked, "--by", "devise"]) == 2
    assert "the log has no column 'devise' to group by" in capsys.readouterr().err
    assert main([*asked, "--continuous", "--by", "x"]) == 2
    assert "groups (by) are not available for continuous actions" in capsys.readouterr().err


def test_the_figure_of_groups() -> None:
    result = podium.compare(log_of(), POLICIES, by=["device", "age"])
    axes = result.plot("groups", by="device").axes[0]
    assert [t.get_text() for t in axes.get_yticklabels()] == [*(f"device {d}" for d in EFFECTS), "all rows"]
    drawn = [sorted(line.get_xdata()) for line in axes.lines if line.get_linewidth() == 2.4]
    ends = [g.interval for g in result.groups if g.by == "device"] + [result.pairs[0].interval]
    assert drawn == [pytest.approx([i.low, i.high]) for i in ends if i is not None]
    empty = podium.compare(log_of(), POLICIES).plot("groups").axes[0]
    assert [t.get_text() for t in empty.texts] == ["the comparison has no groups"]


def test_states_are_judged_by_every_row_where_propensities_are_known() -> None:
    """4,000 rows of one state: the latest row of each action would be noise."""
    data = table(rows=4000) | {"where": np.full(4000, "here", dtype=object)}
    log = podium.Log.from_frame(data, state="where")
    found = podium.compare_states(log, POLICIES)
    assert found.settings["estimator"] == "DRE"
    gap = float(found.values[0, 0] - found.values[0, 1])
    truth = float(np.mean([EFFECTS[d] for d in data["device"]]))
    assert gap == pytest.approx(truth, abs=0.15)
    assert "Per state by DRE with baseline mean, from every row" in found.text()
    bare = podium.Log(data["where"], data["action"], data["reward"])
    assert podium.compare_states(bare, POLICIES).settings["estimator"] == "LDE"
    assert "from the latest row of each action in a state" in podium.compare_states(bare, POLICIES).text().replace(
        "\n  ", " "
    )
