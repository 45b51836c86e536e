"""scikit-learn models are policies: objects, pipelines and skops files, never pickles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.compose import make_column_transformer
from sklearn.ensemble import RandomForestClassifier
from sklearn.linear_model import LinearRegression, LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from skops import io as skops_io

import podium
from podium.command.cli import main


def written(path: Path) -> podium.Log:
    rng = np.random.default_rng(0)
    lines = ["age,where,action,reward,propensity"]
    for _ in range(80):
        age, where, action = rng.integers(20, 80), rng.choice(["north", "south"]), rng.choice(["visit", "call", "sms"])
        lines.append(f"{age},{where},{action},{rng.random():.3f},{1 / 3}")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return podium.read_log(path, state=["age", "where"])


def pipeline(log: podium.Log) -> Any:
    frame = log.to_frame()[["age", "where"]]
    encode = make_column_transformer((StandardScaler(), ["age"]), (OneHotEncoder(), ["where"]))
    return make_pipeline(encode, LogisticRegression()).fit(frame, log.actions)


def test_a_skops_pipeline_is_the_policy_that_the_object_is(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log = written(tmp_path / "log.csv")
    model = pipeline(log)
    skops_io.dump(model, tmp_path / "model.skops")
    by_file = podium.evaluate(log, {"new": str(tmp_path / "model.skops")}).values
    by_object = podium.evaluate(log, {"new": model}).values
    by_array = podium.evaluate(log, {"new": model.predict_proba(log.to_frame()[["age", "where"]])}).values
    assert by_file == by_object == by_array
    options = ["--state", "age", "--state", "where", "--policy", f"new={tmp_path / 'model.skops'}"]
    assert main(["evaluate", str(tmp_path / "log.csv"), *options, "--json"]) == 0
    assert f'"DRE": {by_file["new"]["DRE"]!r}' in capsys.readouterr().out


def test_columns_follow_the_classes_of_the_model_not_the_log(tmp_path: Path) -> None:
    """A model whose classes come in another order than the log's actions, and know one action less."""
    log = written(tmp_path / "log.csv").with_action_space(["sms", "visit", "call"])
    model = RandomForestClassifier(5, random_state=0).fit(
        log.to_frame()[["age"]], np.where(log.actions == "sms", "call", log.actions)
    )
    assert model.classes_.tolist() == ["call", "visit"]
    chances = model.predict_proba(log.to_frame()[["age"]])
    ips = podium.evaluate(log, {"new": model}, ["IPS"]).values["new"]["IPS"]
    own = np.where(log.actions == "call", chances[:, 0], np.where(log.actions == "visit", chances[:, 1], 0.0))
    assert ips == pytest.approx(np.mean(log.rewards * own * 3))


def test_a_regressor_is_no_policy() -> None:
    log = podium.Log(np.arange(4.0)[:, None], [0, 1, 0, 1], [1.0, 0.0, 1.0, 0.0])
    model = LinearRegression().fit(log.states, log.rewards)
    with pytest.raises(podium.PodiumError) as error:
        podium.compare(log, {"a": model, "b": "uniform"})
    assert str(error.value) == (
        "policy 'a': LinearRegression predicts numbers, not actions\n\n"
        "Hint: give a classifier whose classes are the actions; a model of the rewards is a baseline."
    )
