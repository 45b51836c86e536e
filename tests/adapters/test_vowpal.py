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


# --- lists that change from line to line ---------------------------------------------------------------------------


def changing_lists(path: Path, rows: int = 300, seed: int = 0, name: str = "_tag") -> Path:
    """Decisions that each list 2 to 5 of 8 items in any order, with the probability of each."""
    rng = np.random.default_rng(seed)
    items = [f"item{k}" for k in range(8)]
    lines = []
    for n in range(rows):
        listed = rng.choice(items, size=rng.integers(2, 6), replace=False).tolist()
        chances = 0.9 * rng.dirichlet(np.ones(len(listed))) + 0.1 / len(listed)
        place = int(rng.choice(len(listed), p=chances))
        order = [place, *(i for i in range(len(listed)) if i != place)]
        lines.append(
            {
                "_label_cost": -float(rng.random() < 0.2 + 0.08 * items.index(listed[place])),
                "_label_probability": float(chances[place]),
                "_label_Action": place + 1,
                "_labelIndex": place,
                "EventId": str(n),
                "a": [i + 1 for i in order],
                "p": [float(chances[i]) for i in order],
                "c": {
                    "User": {"x": float(rng.normal())},
                    "_multi": [{name: item, "Item": {"name": item}} for item in listed],
                },
            }
        )
    return write(path, "\n".join(map(json.dumps, lines)) + "\n")


@pytest.mark.parametrize("name", ["_tag", "id"])
def test_changing_lists_are_named_by_tag_or_id(name: str, tmp_path: Path) -> None:
    path = changing_lists(tmp_path / "log.dsjson", name=name)
    log = podium.read_log(path)
    assert log.action_space == tuple(f"item{k}" for k in range(8))
    assert list(log.state_columns) == ["User.x"]
    assert log.knows == "full"
    for n, line in enumerate(path.read_text().splitlines()):
        event = json.loads(line)
        listed = [entry[name] for entry in event["c"]["_multi"]]
        assert log.actions[n] == listed[event["_labelIndex"]]
        assert [x for x, yes in zip(log.action_space, log.eligible[n], strict=True) if yes] == sorted(listed)
        for place, p in zip(event["a"], event["p"], strict=True):
            assert log.behavior[n, log.action_space.index(listed[place - 1])] == p


@pytest.mark.parametrize("epsilon", [0.0, 0.3])
def test_vowpal_wabbit_and_podium_agree_on_ips_with_changing_lists(epsilon: float, tmp_path: Path) -> None:
    """The loss that VW reports for a fixed policy is its cost by IPS, over the actions that each line lists."""
    path = changing_lists(tmp_path / "log.dsjson")
    options = f"--cb_explore_adf --dsjson -q :: --cb_type ips --epsilon {epsilon}"
    run(f"{options} -d {path} -f {tmp_path / 'model'}")
    test = f"--dsjson -t -d {path} -i {tmp_path / 'model'} -p {tmp_path / 'p.txt'} --quiet"
    workspace = vowpalwabbit.Workspace(test, enable_logging=False)
    workspace.finish()
    loss = workspace.get_sum_loss() / workspace.get_weighted_examples()
    log = podium.read_log(path)
    policy = vowpal.read_predictions(tmp_path / "p.txt", log)
    assert not policy[~log.eligible].any()
    value = podium.evaluate(log, {"vw": policy}, ["IPS"]).values["vw"]["IPS"]
    assert value == pytest.approx(-loss, rel=1e-6)
    if epsilon:
        by_place = np.array([row[log.eligible[n]].min() for n, row in enumerate(policy)])
        assert by_place.min() > 0  # it explores every listed action, and no other


def test_changing_lists_there_and_back(tmp_path: Path) -> None:
    log = podium.read_log(changing_lists(tmp_path / "log.dsjson", rows=40))
    vowpal.write_log(log, tmp_path / "again.dsjson")
    again = podium.read_log(tmp_path / "again.dsjson")
    np.testing.assert_array_equal(again.actions, log.actions)
    np.testing.assert_array_equal(again.eligible, log.eligible)
    np.testing.assert_array_equal(again.behavior, log.behavior)
    with pytest.raises(podium.PodiumError) as error:
        vowpal.write_log(log, tmp_path / "again.vw")
    assert str(error.value) == (
        "cb text has one list of actions for all rows, and this log has eligible actions by row\n\n"
        "Hint: write a .dsjson file, in which every decision lists its own actions."
    )


TAGGED = (
    "shared |User age:41\n'x |Action f\n0:-1:0.4 'y |Action g\n\n"
    "shared |User age:30\n0:0.5:0.6 y|Action g\nz|Action h\n'x|Action f\n\n"
)


def test_cb_adf_text_with_tags_or_ids(tmp_path: Path) -> None:
    log = podium.read_log(write(tmp_path / "log.vw", TAGGED))
    assert log.actions.tolist() == ["y", "y"]
    assert log.action_space == ("x", "y", "z")
    np.testing.assert_array_equal(log.eligible, [[True, True, False], [True, True, True]])
    ids = "shared | a\n| id=7\n0:-1:0.4 | id=3\n\nshared | a\n0:0:0.5 | id=3\n| id=9\n"
    log = podium.read_log(write(tmp_path / "ids.vw", ids))
    assert log.actions.tolist() == ["3", "3"]
    assert log.action_space == ("3", "7", "9")


def test_lists_of_different_lengths_without_ids_are_named_by_place_with_a_warning(tmp_path: Path) -> None:
    log = podium.read_log(write(tmp_path / "log.vw", ADF))
    np.testing.assert_array_equal(log.eligible, [[True, True, False], [True, True, True]])
    warnings = podium.evaluate(log, {"u": "uniform"}, ["IPS"]).warnings
    assert [w.code for w in warnings] == ["actions named by slot"]


LISTS = {
    "twice": (
        "a.dsjson",
        '{"_label_cost": 1, "_labelIndex": 0, "c": {"_multi": [{"_tag": "x"}, {"_tag": "x"}]}}\n',
        "a.dsjson: line 1 lists the action 'x' twice",
    ),
    "some without": (
        "a.dsjson",
        '{"_label_cost": 1, "_labelIndex": 0, "c": {"_multi": [{"_tag": "x"}]}}\n'
        '{"_label_cost": 1, "_labelIndex": 0, "c": {"_multi": [{"f": 1}]}}\n',
        "a.dsjson: line 2 has actions without a tag or id, and others have one",
    ),
}


@pytest.mark.parametrize("name", LISTS)
def test_bad_lists_are_named(name: str, tmp_path: Path) -> None:
    file, content, message = LISTS[name]
    with pytest.raises(podium.PodiumError) as error:
        podium.read_log(write(tmp_path / file, content))
    assert str(error.value) == (
        message + '\n\nHint: give every action a tag: {"_tag": "x", ...} in "_multi", or \'x| in text.'
    )


def test_a_place_beyond_the_list_is_named(tmp_path: Path) -> None:
    path = write(
        tmp_path / "a.dsjson", '{"_label_cost": 1, "_labelIndex": 3, "c": {"_multi": [{"_tag": "x"}, {"_tag": "y"}]}}\n'
    )
    with pytest.raises(podium.PodiumError) as error:
        podium.read_log(path)
    assert str(error.value) == (
        "a.dsjson: line 1: the action 4 is not among the 2 actions of its list\n\n"
        "Hint: actions are counted from 1 in '_label_Action' and 'a', and from 0 in '_labelIndex'."
    )
    event = {"_label_cost": 1, "_labelIndex": 0, "a": [1, 3], "p": [0.5, 0.5], "c": {"_multi": [{"id": 5}, {"id": 6}]}}
    with pytest.raises(podium.PodiumError) as error:
        podium.read_log(write(tmp_path / "a.dsjson", json.dumps(event)))
    assert str(error.value) == (
        "a.dsjson: line 1 gives a probability to the action 3, and lists 2\n\n"
        "Hint: 'a' counts the actions of '_multi' from 1."
    )
    log = podium.read_log(changing_lists(tmp_path / "log.dsjson", rows=3))
    with pytest.raises(podium.PodiumError) as error:
        vowpal.read_predictions(write(tmp_path / "p.txt", "7:1\n" * 3), log)
    many = int(log.eligible[0].sum())
    assert str(error.value) == (
        f"p.txt: line 1 names the action 7; row 1 of the log lists {many} actions\n\n"
        "Hint: predict the log's own rows, in their order."
    )


def decision(**changes: Any) -> str:
    event = {
        "_label_cost": 1,
        "_label_probability": 0.5,
        "_labelIndex": 0,
        "c": {"_multi": [{"_tag": "x"}, {"_tag": "y"}]},
    }
    return json.dumps({**event, **changes}) + "\n"


COUNTED = "actions are counted from 1 in '_label_Action' and 'a', and from 0 in '_labelIndex'."
SLOTS = "write one decision per slot, with its own '_label_cost', '_label_probability' and '_labelIndex'."
FAULTY = {
    "no list": (
        decision(c={"_multi": 5}),
        "a.dsjson: line 1: '_multi' must be a list of actions; it is 5",
        'write the actions as "_multi": [{"_tag": "x", ...}, {"_tag": "y", ...}].',
    ),
    "two labels": (
        decision(_label_Action=2),
        "a.dsjson: line 1: '_label_Action' is 2, and '_labelIndex' is 0",
        COUNTED,
    ),
    "before the first place": (
        decision(_labelIndex=-1, c={"_multi": [{"f": 1}, {"f": 2}]}),
        "a.dsjson: line 1: the action 0 is not among the 2 actions of its list",
        COUNTED,
    ),
    "sum": (
        decision(a=[1, 2], p=[0.5, 0.2]),
        "a.dsjson: line 1: the probabilities in 'p' add up to 0.7, and must to 1",
        "'p' holds one probability for each action of 'a', with all of its digits.",
    ),
    "ccb": (
        decision(_outcomes=[{"_label_cost": 1, "_a": [0], "_p": [1.0]}]),
        "a.dsjson: line 1 fills several slots (ccb or slates), and podium compares decisions for one action",
        SLOTS,
    ),
    "slates": (
        decision(c={"_multi": [{"_slot_id": 0}], "_slots": [{"f": 1}]}),
        "a.dsjson: line 1 fills several slots (ccb or slates), and podium compares decisions for one action",
        SLOTS,
    ),
    "continuous": (
        decision(_label_ca={"action": 1.5, "cost": 1, "pdf_value": 0.1}),
        "a.dsjson: line 1 has a continuous action ('_label_ca')",
        "write actions, costs and densities as columns, and use podium.continuous (--continuous).",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTY)
def test_other_kinds_and_faulty_lists_are_refused(name: str, tmp_path: Path) -> None:
    content, message, hint = FAULTY[name]
    with pytest.raises(podium.PodiumError) as error:
        podium.read_log(write(tmp_path / "a.dsjson", content))
    assert str(error.value) == f"{message}\n\nHint: {hint}"


@pytest.mark.parametrize("file", ["a.dsjson", "a.vw"])
@pytest.mark.parametrize("same", [True, False])
def test_a_place_that_holds_different_items_is_warned_of(file: str, same: bool, tmp_path: Path) -> None:
    """Lists of one length without tags: places are actions, and podium says where they hold different features."""
    if file == "a.vw":
        content = "".join(f"shared | a\n0:1:0.5 |A n={'p' if same else n}\n|A n=q\n\n" for n in range(4))
    else:
        lists = [[{"A": {"n": "p" if same else n}}, {"A": {"n": "q"}}] for n in range(4)]
        content = "".join(decision(c={"_multi": entries}) for entries in lists)
    log = podium.read_log(write(tmp_path / file, content))
    found = [w.code for w in podium.evaluate(log, {"u": "uniform"}, ["IPS"]).warnings]
    assert found == ([] if same else ["actions named by slot"])
