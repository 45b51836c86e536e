"""Vowpal Wabbit's logs and predictions, as it writes and reads them itself."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import vowpalwabbit
from samples import sample

import podium
from podium.adapters import vowpal
from podium.command.cli import main

CB = "1:-1:0.8 |User age:41 sex=f\n2:0.5:0.2 |User age:30\n\n1:0:0.8 'tag|User age:25 sex=m |Item sport\n"
ADF = (
    "shared |User age:41\n|Action x\n0:-1:0.4 |Action y\n\n"
    "shared |User age:30\n0:0.5:0.6 |Action x\n|Action y\n|Action z\n\n"
    "shared |User age:9\n|Action x\n|Action y\n"
)


def event(action: int, cost: float, chances: list[float], **context: Any) -> dict[str, Any]:
    order = [action, *(a for a in range(1, len(chances) + 1) if a != action)]
    return {
        "_label_cost": cost,
        "_label_probability": chances[action - 1],
        "_label_Action": action,
        "_labelIndex": action - 1,
        "Timestamp": f"2026-01-0{action}T00:00:00Z",
        "EventId": "e",
        "a": order,
        "p": [chances[a - 1] for a in order],
        "c": {"User": context, "_multi": [{"Action": {"id": a}} for a in range(1, len(chances) + 1)]},
    }


def write(path: Path, content: str) -> Path:
    path.write_text(content, encoding="utf-8")
    return path


def run(arguments: str) -> None:
    """Vowpal Wabbit itself."""
    vowpalwabbit.Workspace(f"{arguments} --quiet", enable_logging=False).finish()


def test_cb_text(tmp_path: Path) -> None:
    log = podium.read_log(write(tmp_path / "log.vw", CB))
    np.testing.assert_array_equal(log.actions, [1, 2, 1])
    np.testing.assert_array_equal(log.rewards, [1.0, -0.5, 0.0])
    np.testing.assert_array_equal(log.propensities, [0.8, 0.2, 0.8])
    assert {name: column.tolist() for name, column in log.state_columns.items()} == {
        "User.age": [41.0, 30.0, 25.0],
        "User.sex": ["f", "absent", "m"],
        "Item.sport": [0.0, 0.0, 1.0],
    }


def test_cb_adf_text(tmp_path: Path) -> None:
    """A decision's action is the place of its labelled line; one without a label has no outcome yet."""
    log = podium.read_log(write(tmp_path / "log.vw", ADF))
    np.testing.assert_array_equal(log.actions, [2, 1])
    np.testing.assert_array_equal(log.rewards, [1.0, -0.5])
    np.testing.assert_array_equal(log.propensities, [0.4, 0.6])
    assert log.state_columns["User.age"].tolist() == [41.0, 30.0]


def test_cb_adf_text_without_shared_features(tmp_path: Path) -> None:
    for text in ("0:-1:0.5 |A x\n|A y\n\n", "0:-1:0.5 |A x\n|A y", "\n0:-1:0.5 |A x\n|A y\n\n|A x\n0:0:0.5 |A y\n"):
        log = podium.read_log(write(tmp_path / "a.vw", text))
        assert log.actions.tolist() == [1, 2][: len(log)]
        assert log.rewards.tolist() == [1.0, 0.0][: len(log)]


def test_dsjson(tmp_path: Path) -> None:
    lines = [event(1, -1, [0.7, 0.3], age=41, sex="f"), event(2, 0, [0.1, 0.7, 0.2], age=30, tags=["a"])]
    lines.append({"EventId": "late", "v": 1.0})  # a bare outcome
    lines.append({**event(1, -1, [0.5, 0.5], age=1), "_skipLearn": True})
    content = "\n".join(map(json.dumps, lines)) + "\n"
    log = podium.read_log(write(tmp_path / "log.dsjson", content))
    assert log.knows == "full"
    assert log.action_space == (1, 2, 3)
    np.testing.assert_array_equal(log.behavior, [[0.7, 0.3, 0.0], [0.1, 0.7, 0.2]])
    assert log.state_columns["User.tags[0]"].tolist() == ["absent", "a"]
    assert log.times is not None
    with gzip.open(tmp_path / "log.dsjson.gz", "wt") as stream:
        stream.write(content)
    np.testing.assert_array_equal(podium.read_log(tmp_path / "log.dsjson.gz").behavior, log.behavior)


@pytest.mark.parametrize("ending", ["vw", "dsjson"])
def test_there_and_back_nothing_changes(ending: str, tmp_path: Path) -> None:
    log, _ = sample(rows=60, actions=3)
    vowpal.write_log(log, tmp_path / f"log.{ending}")
    again = vowpal.read_log(tmp_path / f"log.{ending}")
    assert again.knows == ("full" if ending == "dsjson" else "logged")
    np.testing.assert_array_equal(again.action_codes, log.action_codes)
    np.testing.assert_array_equal(again.rewards, log.rewards)
    np.testing.assert_array_equal(again.propensities, log.propensities)
    np.testing.assert_array_equal(next(iter(again.state_columns.values())), log.state_columns["state"])


@pytest.mark.parametrize(
    ("ending", "options"), [("vw", "--cb_explore 3"), ("dsjson", "--cb_explore_adf --dsjson -q ::")]
)
def test_vowpal_wabbit_learns_from_what_is_written_and_its_predictions_are_a_policy(
    ending: str, options: str, tmp_path: Path
) -> None:
    """The reward grows with the action, so VW must learn to play the last one, and podium must say so."""
    log, _ = sample(rows=400, actions=3, text=True, distinct=8, noise=0.1)
    path = tmp_path / f"log.{ending}"
    vowpal.write_log(log, path)
    run(f"{options} --epsilon 0.1 --passes 5 -d {path} -c -k --holdout_off -f {tmp_path / 'model'}")
    run(f"{options} -t -d {path} -i {tmp_path / 'model'} -p {tmp_path / 'new.txt'}")
    read = podium.read_log(path)
    policy = vowpal.read_predictions(tmp_path / "new.txt", read)
    assert policy.shape == (400, 3)
    np.testing.assert_allclose(policy.sum(axis=1), 1)
    assert policy[:, 2].mean() > 0.8
    result = podium.compare(read, {"vw": policy, "now": "logged"}, estimator="DRE", verdicts="paired t")
    assert (result.best, result.pairs[0].verdict) == ("vw", "better")


def test_vowpal_wabbit_and_podium_agree_on_ips(tmp_path: Path) -> None:
    """The loss that VW reports for a fixed policy is its cost by IPS; VW computes in single precision."""
    log, _ = sample(rows=300, actions=3, knows="logged")
    path = tmp_path / "log.vw"
    vowpal.write_log(log, path)
    run(f"--cb_explore 3 --epsilon 0.3 --cb_type ips -d {path} -f {tmp_path / 'model'}")
    options = f"-t -d {path} -i {tmp_path / 'model'} -p {tmp_path / 'p.txt'} --quiet"
    workspace = vowpalwabbit.Workspace(options, enable_logging=False)
    workspace.finish()
    loss = workspace.get_sum_loss() / workspace.get_weighted_examples()
    policy = vowpal.read_predictions(tmp_path / "p.txt", podium.read_log(path))
    assert len(np.unique(policy)) > 1  # neither uniform nor one-hot
    values = podium.evaluate(podium.read_log(path), {"vw": policy}, ["IPS"]).values
    assert values["vw"]["IPS"] == pytest.approx(-loss, rel=1e-5)


def test_the_command_takes_both(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, _ = sample(rows=60, actions=3)
    vowpal.write_log(log, tmp_path / "log.dsjson")
    write(tmp_path / "new.txt", "0:0.1,1:0.1,2:0.8\n\n" * 60)
    code = main(
        ["compare", str(tmp_path / "log.dsjson"), "--policy", f"new=vw:{tmp_path / 'new.txt'}", "--policy",
         "now=logged", "--json"]
    )  # fmt: skip
    assert code == 0
    assert json.loads(capsys.readouterr().out)["policies"][0]["name"] == "new"


BAD: dict[str, tuple[str, str, str]] = {
    "no bar": ("a.vw", "1:0:0.5 age:1\n", "a.vw: line 1 has no '|'\n\nHint: features follow a '|': 2:-1:0.5 | age:41"),
    "bad label": (
        "a.vw",
        "1:0:0.5 | a\n1:x:0.5 | a\n",
        "a.vw: line 2 has the label '1:x:0.5'\n\nHint: " + vowpal.LABEL_HINT,
    ),
    "no label": ("a.vw", "1:0:0.5 | a\n1:0:0.5 | a\n| a\n", "a.vw: line 3 has no label\n\nHint: " + vowpal.LABEL_HINT),
    "two labels": (
        "a.vw",
        "1:0:0.5 2:0:0.5 | a\n",
        "a.vw: line 1 has the label '1:0:0.5 2:0:0.5'\n\nHint: " + vowpal.LABEL_HINT,
    ),
    "two chosen": (
        "a.vw",
        "shared | a\n0:1:0.5 | x\n0:0:0.5 | y\n",
        "a.vw: line 3 is the second labelled action of one decision\n\nHint: one action per decision has a label; end "
        "each decision with a blank line.",
    ),
    "feature": (
        "a.vw",
        "1:0:0.5 | age:old\n",
        "a.vw: line 1: the feature 'age:old' has no number after its colon\n\nHint: write numbers as name:value and "
        "texts as name=value.",
    ),
    "some probabilities": (
        "a.vw",
        "1:0:0.5 | a\n1:0 | a\n",
        "a.vw: line 2 has no probability, and others have one\n\nHint: " + vowpal.LABEL_HINT,
    ),
    "nothing": ("a.vw", "\n", "a.vw holds no decision with a cost\n\nHint: " + vowpal.LABEL_HINT),
    "feature called reward": (
        "a.vw",
        "1:0:0.5 | reward:1\n",
        "a.vw: a feature is called 'reward'\n\nHint: put it into a namespace: |User reward",
    ),
    "not JSON": (
        "a.dsjson",
        "{}\n{,}\n",
        "a.dsjson: line 2 is not valid JSON: Expecting property name enclosed in double quotes: line 1 column 2 "
        "(char 1)\n\nHint: dsjson is one JSON object per line.",
    ),
    "no cost": (
        "a.dsjson",
        '{"c": {}}\n',
        "a.dsjson: line 1 has no '_label_cost'\n\nHint: join the outcomes with the decisions first.",
    ),
    "a and p": (
        "a.dsjson",
        '{"_label_cost": 1, "_labelIndex": 0, "a": [1, 2], "p": [1]}\n',
        "a.dsjson: line 1 lists 2 actions in 'a' and 1 probabilities in 'p'\n\nHint: 'p' holds one probability for "
        "each action of 'a'.",
    ),
    "pdrop": (
        "a.dsjson",
        '{"_label_cost": 1, "_labelIndex": 0, "pdrop": "x"}\n',
        "a.dsjson: line 1: 'pdrop' must be a number; it is 'x'\n\nHint: it is the probability with which a decision "
        "was dropped from the file.",
    ),
    "context": (
        "a.dsjson",
        '{"_label_cost": 1, "_labelIndex": 0, "c": [1]}\n',
        "a.dsjson: line 1: 'c' must be a JSON object of features; it is [1]\n\nHint: write the context as "
        '"c": {"User": {"age": 41}}.',
    ),
    "probability": (
        "a.dsjson",
        '{"_label_cost": 1, "_labelIndex": 0, "_label_probability": "x"}\n',
        "a.dsjson: line 1 holds what is no number: could not convert string to float: 'x'\n\nHint: see the dsjson "
        "format.",
    ),
    "drops": (
        "a.dsjson",
        '{"_label_cost": 1, "_labelIndex": 0, "pdrop": 0.5}\n{"_label_cost": 1, "_labelIndex": 0}\n',
        "a.dsjson: line 2 has pdrop 0, earlier lines 0.5\n\nHint: rows that were dropped at different rates do not "
        "stand for one population; split the file.",
    ),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_lines_are_named(name: str, tmp_path: Path) -> None:
    file, content, message = BAD[name]
    with pytest.raises(podium.PodiumError) as error:
        podium.read_log(write(tmp_path / file, content))
    assert str(error.value) == message


def test_too_many_features_are_refused(tmp_path: Path) -> None:
    lines = "".join(f"1:0:0.5 | id{n}\n" for n in range(vowpal.MOST_FEATURES + 1))
    with pytest.raises(podium.PodiumError) as error:
        podium.read_log(write(tmp_path / "a.vw", lines))
    assert str(error.value) == (
        "a.vw has 2,001 different features; podium takes up to 2,000\n\n"
        "Hint: leave out ids and crossed features; write texts as name=value."
    )


PREDICTIONS = {
    "costs": (
        "0:-0.9,1:0.1\n" * 3,
        "p.txt: the sum of a row's probabilities must be 1; row 1 holds -0.8 (3 rows)\n\nHint: ",
    ),
    "one number": ("1\n1\n1\n", "p.txt: line 1 is no list of action:probability\n\nHint: "),
    "too few": (
        "0:1\n",
        "p.txt has 1 prediction; the log has 3 rows\n\nHint: predict the log's own rows, in their order.",
    ),
    "unknown action": (
        "0:0.5,7:0.5\n" * 3,
        "p.txt: line 1 names the action 7, which is no action of the log\n\nHint: it would be 8 in the log; name every "
        "action with actions=[...] or --actions.",
    ),
}


@pytest.mark.parametrize("name", PREDICTIONS)
def test_bad_predictions_are_named(name: str, tmp_path: Path) -> None:
    content, message = PREDICTIONS[name]
    log = podium.read_log(write(tmp_path / "log.vw", CB))
    with pytest.raises(podium.PodiumError) as error:
        vowpal.read_predictions(write(tmp_path / "p.txt", content), log)
    hint = "write probabilities with --cb_explore or --cb_explore_adf, -t and -p; --epsilon 0 for the greedy policy."
    assert str(error.value) == (message + hint if message.endswith("Hint: ") else message)


def test_what_cannot_be_written_says_why(tmp_path: Path) -> None:
    log, _ = sample(knows="none")
    with pytest.raises(podium.PodiumError, match="Vowpal Wabbit needs probabilities, and the log has none"):
        vowpal.write_log(log, tmp_path / "log.vw")
    log, _ = sample()
    with pytest.raises(podium.PodiumError, match=r"'log.csv' has an ending that is not Vowpal Wabbit's"):
        vowpal.write_log(log, tmp_path / "log.csv")
    assert list(tmp_path.iterdir()) == []
