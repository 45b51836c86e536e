"""Fitted models of scikit-learn load from .skops files; all else that a file holds is refused before data is read."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from functools import partial
from io import BytesIO
from pathlib import Path
from typing import Any
from zipfile import ZipFile

import numpy as np
import pandas as pd
import pytest
import sklearn
from numpy.testing import assert_allclose
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import make_column_selector, make_column_transformer
from sklearn.ensemble import (
    AdaBoostClassifier,
    BaggingClassifier,
    ExtraTreesClassifier,
    GradientBoostingClassifier,
    HistGradientBoostingClassifier,
    RandomForestClassifier,
    StackingClassifier,
    VotingClassifier,
)
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression, SGDClassifier
from sklearn.model_selection import GridSearchCV
from sklearn.neighbors import KNeighborsClassifier
from sklearn.neural_network import MLPClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, KBinsDiscretizer, OneHotEncoder, StandardScaler
from sklearn.tree import DecisionTreeClassifier
from skops import io as skops_io

import podium
from podium.adapters.skops import is_allowed, load_skops
from podium.adapters.trees import Damaged, check_trees
from podium.command.cli import main

RNG = np.random.default_rng(0)
ROWS = 90
STATES = np.column_stack([RNG.normal(size=(ROWS, 2)), RNG.integers(0, 5, ROWS)])
ACTIONS = RNG.integers(0, 3, ROWS)
FRAME = pd.DataFrame({"age": STATES[:, 0], "where": np.array(["n", "s", "w"])[RNG.integers(0, 3, ROWS)]})


def tables(model: Any) -> Any:
    encode = make_column_transformer(
        (StandardScaler(), make_column_selector(dtype_include=np.number)), (OneHotEncoder(), ["where"])
    )
    return make_pipeline(encode, SimpleImputer(), model)


MODELS: dict[str, tuple[Any, Any]] = {
    "tree": (DecisionTreeClassifier(random_state=0), STATES),
    "forest": (RandomForestClassifier(5, random_state=np.random.RandomState(0)), STATES),
    "extra trees": (ExtraTreesClassifier(5, random_state=0), STATES),
    "boosting": (GradientBoostingClassifier(n_estimators=4, random_state=0), STATES),
    "boosting from zero": (GradientBoostingClassifier(n_estimators=4, init="zero", random_state=0), STATES),
    "histograms": (HistGradientBoostingClassifier(max_iter=4, random_state=0), STATES),
    "histograms of categories": (
        HistGradientBoostingClassifier(max_iter=4, categorical_features=[2], min_samples_leaf=5, random_state=0),
        STATES,
    ),
    "histograms of a frame": (
        HistGradientBoostingClassifier(max_iter=4, categorical_features=["where"], random_state=0),
        FRAME,
    ),
    "AdaBoost": (AdaBoostClassifier(n_estimators=3, random_state=0), STATES),
    "bagging of columns": (BaggingClassifier(n_estimators=3, max_features=2, random_state=0), STATES),
    "voting": (
        VotingClassifier([("a", tables(RandomForestClassifier(3))), ("b", tables(SGDClassifier(loss="log_loss")))]),
        FRAME,
    ),
    "stacking": (
        StackingClassifier([("a", LogisticRegression()), ("b", DecisionTreeClassifier(max_depth=2))], cv=3),
        STATES,
    ),
    "calibration": (CalibratedClassifierCV(DecisionTreeClassifier(max_depth=2), cv=3), STATES),
    "search": (GridSearchCV(DecisionTreeClassifier(), {"max_depth": [1, 2]}, cv=3), STATES),
    "network": (make_pipeline(StandardScaler(), MLPClassifier(max_iter=300, random_state=0)), STATES),
    "pipeline": (tables(GradientBoostingClassifier(n_estimators=3)), FRAME),
    "steps": (
        make_pipeline(KBinsDiscretizer(3, quantile_method="averaged_inverted_cdf"), LogisticRegression()),
        STATES,
    ),
    "ufunc": (make_pipeline(FunctionTransformer(np.arctan), LogisticRegression()), STATES),
    "brute neighbors": (KNeighborsClassifier(algorithm="brute"), STATES),
}


def fitted(model: Any, states: Any, actions: Any = ACTIONS) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return model.fit(states, actions)


@pytest.mark.parametrize("name", MODELS)
def test_fitted_models_of_scikit_learn_load(name: str, tmp_path: Path) -> None:
    model, states = MODELS[name]
    fitted(model, states)
    skops_io.dump(model, tmp_path / "model.skops")
    again = load_skops(tmp_path / "model.skops")
    ask = "predict_proba" if hasattr(model, "predict_proba") else "predict"
    assert_allclose(getattr(again.model, ask)(states), getattr(model, ask)(states), rtol=1e-12)
    assert again.made_with == ""


def test_an_answer_from_the_command(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    log, model = write_log(tmp_path), fitted(RandomForestClassifier(5, random_state=0), STATES)
    skops_io.dump(model, tmp_path / "forest.skops")
    assert main(["evaluate", str(log), "--policy", f"new={tmp_path / 'forest.skops'}", "--json"]) == 0
    said = json.loads(capsys.readouterr().out)["policies"][0]["estimates"]["DRE"]
    assert said == podium.evaluate(podium.read_log(log), {"new": model}).values["new"]["DRE"]


def write_log(folder: Path) -> Path:
    frame = pd.DataFrame(STATES, columns=["a", "b", "c"]).assign(action=ACTIONS, reward=RNG.random(ROWS))
    frame.assign(propensity=1 / 3).to_csv(folder / "log.csv", index=False)
    return folder / "log.csv"


# --- what is refused ---------------------------------------------------------------------------------------------


def rewritten(path: Path, change: Callable[[str], str] = str, **arrays: Callable[[Any], Any]) -> Path:
    """A skops file whose schema, or whose arrays with a field of that name, an attacker has changed."""
    with ZipFile(path) as file:
        entries = {name: file.read(name) for name in file.namelist()}
    entries["schema.json"] = change(entries["schema.json"].decode()).encode()
    for name, content in entries.items():
        if name.endswith(".npy"):
            array = np.load(BytesIO(content))
            for field, spoil in arrays.items():
                if array.dtype.names and field in array.dtype.names:
                    array = array.copy()
                    array[field] = spoil(array[field])
            buffer = BytesIO()
            np.save(buffer, array)
            entries[name] = buffer.getvalue()
    changed = path.with_name("changed.skops")
    with ZipFile(changed, "w") as file:
        for name, content in entries.items():
            file.writestr(name, content)
    return changed


def refusal(path: Path, folder: Path, capsys: pytest.CaptureFixture[str]) -> str:
    """What the command says of a model, before it looks for the log (of which there is none)."""
    before = sorted(folder.iterdir())
    code = main(
        ["compare", str(folder / "no.csv"), "--policy", f"m={path}", "--policy", "u=uniform", "--html", "r.html"]
    )
    assert (code, sorted(folder.iterdir())) == (2, before)
    return capsys.readouterr().err


def touch_file(states: Any) -> Any:
    Path("ran").touch()
    return states


@pytest.mark.parametrize(
    ("function", "named"),
    [
        (touch_file, "tests.adapters.test_skops.touch_file"),
        (np.savetxt, "numpy.savetxt"),
        (partial(np.savetxt, "ran"), "numpy.savetxt"),
        (eval, "builtins.eval"),
        (sklearn.utils.deprecation.deprecated, "sklearn.utils.deprecation.deprecated"),
        (sklearn.clone, "sklearn.base.clone"),
    ],
)
def test_functions_stay_refused(
    function: Any, named: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    model = make_pipeline(FunctionTransformer(), LogisticRegression()).fit(STATES, ACTIONS)
    model.steps[0][1].func = function
    skops_io.dump(model, tmp_path / "model.skops")
    named = named.replace("tests.adapters.test_skops", __name__)
    assert refusal(tmp_path / "model.skops", tmp_path, capsys) == (
        f"podium: model.skops holds what podium does not load from a file: {named}\n\n"
        "Hint: load the model in Python yourself, and pass the object to podium.compare.\n"
    )


def test_a_loader_cannot_be_pointed_at_other_code(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same file, in which the name of a type is exchanged for that of a function or of another module."""
    skops_io.dump(fitted(DecisionTreeClassifier(), STATES), tmp_path / "model.skops")
    for module, kind in (
        ("os", "system"),
        ("sklearn.utils._joblib", "Parallel"),
        ("sklearn.utils.fixes", "threadpoolctl"),
        ("sklearn.datasets._base", "load_files"),
        ("sklearn.utils.parallel", "Parallel"),
        ("sklearn.tests.random_seed", "os"),
        ("sklearn.nowhere", "Tree"),
        ("sklearn", "show_versions"),
    ):
        changed = rewritten(
            tmp_path / "model.skops",
            lambda text, module=module, kind=kind: text.replace('"DecisionTreeClassifier"', json.dumps(kind)).replace(
                '"sklearn.tree._classes"', json.dumps(module)
            ),
        )
        assert refusal(changed, tmp_path, capsys) == (
            f"podium: changed.skops holds what podium does not load from a file: {module}.{kind}\n\n"
            "Hint: load the model in Python yourself, and pass the object to podium.compare.\n"
        )
        changed.unlink()


@pytest.mark.parametrize(
    "name",
    [
        "builtins.eval", "os.system", "sklearn", "sklearn.", ".Tree", "sklearn.base.clone", "sklearn.utils._bunch.dict",
        "sklearn..Tree", "sklearn.externals._arff.ArffDecoder", "sklearn.utils._mocking.CheckingClassifier",
        "sklearn.conftest.pytest", "sklearn.tree._tree.Tree.predict", "sklearn.pipeline.np", "sklearnx.Tree",
        "sklearn.neighbors._kd_tree.KDTree", "sklearn.utils.parallel.Parallel", "numpy.load", "functools.reduce",
    ],
)  # fmt: skip
def test_names_that_no_model_needs(name: str) -> None:
    assert not is_allowed(name)


def test_search_trees_have_another_way(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    skops_io.dump(KNeighborsClassifier(algorithm="kd_tree").fit(STATES, ACTIONS), tmp_path / "model.skops")
    assert refusal(tmp_path / "model.skops", tmp_path, capsys) == (
        "podium: model.skops holds what podium does not load from a file: "
        "sklearn.metrics._dist_metrics.EuclideanDistance64, sklearn.neighbors._kd_tree.KDTree\n\n"
        "Hint: fit it with algorithm='brute', which saves no search tree.\n"
    )


OUTSIDE = "a tree points outside itself"
NO_COLUMN = "a split uses a column that is not there"
POISONED: dict[str, tuple[str, dict[str, Any], str]] = {
    "child far away": ("tree", {"left_child": lambda x: np.where(x > 0, 10**6, x)}, OUTSIDE),
    "child before its parent": ("forest", {"right_child": lambda x: np.where(x > 0, 0, x)}, OUTSIDE),
    "child below nothing": ("boosting", {"right_child": lambda x: np.where(x > 0, -3, x)}, OUTSIDE),
    "column far away": ("tree", {"feature": lambda x: np.where(x >= 0, 3, x)}, NO_COLUMN),
    "column below nothing": ("forest", {"feature": lambda x: np.where(x >= 0, -5, x)}, NO_COLUMN),
    "bin child far away": ("histograms", {"left": lambda x: np.where(x > 0, 10**6, x)}, OUTSIDE),
    "bin column far away": ("histograms", {"feature_idx": lambda x: x + 3}, NO_COLUMN),
    "categories of a number": (
        "histograms", {"is_categorical": lambda x: x + 1}, "a split uses categories of a column that has none"
    ),
    "categories far away": (
        "histograms of categories", {"bitset_idx": lambda x: x + 10**6}, "a split uses categories that are not there"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", POISONED)
def test_trees_that_point_outside_themselves_are_refused(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """scikit-learn would follow them, and read memory that is not the model's."""
    which, change, said = POISONED[name]
    model, states = MODELS[which]
    actions = STATES[:, 2] % 3 if which.endswith("categories") else ACTIONS
    skops_io.dump(fitted(model, states, actions), tmp_path / "model.skops")
    assert refusal(rewritten(tmp_path / "model.skops", **change), tmp_path, capsys) == (
        f"podium: changed.skops holds a damaged model: {said}\n\n"
        "Hint: the file was changed after it was saved; save the model again with skops.io.dump.\n"
    )


def test_models_whose_parts_do_not_fit_together() -> None:
    narrow, wide = (fitted(DecisionTreeClassifier(), STATES[:, :n]) for n in (2, 3))
    forest = fitted(RandomForestClassifier(2), STATES[:, :2])
    forest.estimators_[1] = wide
    other = "a tree has another number of columns than its model"
    damaged(forest, other)
    narrow.tree_ = wide.tree_
    damaged(narrow, other)
    del wide.n_features_in_
    damaged(make_pipeline(StandardScaler(), wide), "a model does not say how many columns it has")
    boosting = fitted(GradientBoostingClassifier(n_estimators=2), STATES)
    boosting.estimators_ = np.concatenate([boosting.estimators_] * 2, axis=1)
    damaged(boosting, "it has more trees in a round than outputs")
    boosting.estimators_ = boosting.estimators_.tolist()
    damaged(boosting, "its trees are no table")
    boosting.estimators_ = np.array([[forest]], dtype=object)
    damaged(boosting, other)
    scaler = fitted(StandardScaler(), STATES)
    scaler.hidden = [{"deep": (fitted(DecisionTreeClassifier(), STATES).tree_,)}]
    damaged(scaler, "a tree belongs to no model")
    bins = fitted(HistGradientBoostingClassifier(max_iter=2), STATES)
    bins._predictors[0][0].raw_left_cat_bitsets = np.zeros((1, 2), dtype=np.uint32)
    damaged(bins, "a tree's categories are not whole")
    bins._bin_mapper.is_categorical_ = np.zeros(1, dtype=bool)
    damaged(bins, "its bins are of other columns")


def damaged(model: Any, said: str) -> None:
    with pytest.raises(Damaged) as error:
        check_trees(model)
    assert str(error.value) == said


def test_a_preparation_that_drops_columns_is_noticed_when_it_is_asked(tmp_path: Path) -> None:
    """The trees of such a model were fitted on three columns, and its first step now gives two."""
    model = fitted(HistGradientBoostingClassifier(max_iter=2, categorical_features=[2]), STATES)
    cut = make_column_transformer(("passthrough", [0, 1])).fit(STATES)
    model._preprocessor = cut
    skops_io.dump(model, tmp_path / "model.skops")
    loaded = load_skops(tmp_path / "model.skops").model
    with pytest.raises(ValueError, match=r"^its preparation changes the number of columns$"):
        loaded.predict_proba(STATES)


def test_what_is_no_model_file(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "model.skops").write_bytes(b"PK")
    assert refusal(tmp_path / "model.skops", tmp_path, capsys) == (
        "podium: model.skops is not a skops file: it is not a zip archive\n\nHint: save the model with skops.io.dump.\n"
    )
    assert refusal(tmp_path / "none.skops", tmp_path, capsys) == (
        f"podium: there is no file {str(tmp_path / 'none.skops')!r}\n\nHint: check the path of the model.\n"
    )


def test_a_file_that_unpacks_to_too_much(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    skops_io.dump(fitted(LogisticRegression(), STATES), tmp_path / "model.skops")
    monkeypatch.setattr("podium.adapters.skops.LARGEST", 10)
    size = (tmp_path / "model.skops").stat().st_size / 1e9
    assert refusal(tmp_path / "model.skops", tmp_path, capsys) == (
        f"podium: model.skops is not a skops file: it unpacks to {size:.1f} GB\n\n"
        "Hint: save the model with skops.io.dump.\n"
    )


# --- versions ----------------------------------------------------------------------------------------------------


def of_version(text: str) -> str:
    assert f'\\"{sklearn.__version__}\\"' in text
    return text.replace(f'\\"{sklearn.__version__}\\"', '\\"1.3.0\\"')


def test_a_model_of_another_version_is_told_in_podiums_words(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    log = write_log(tmp_path)
    skops_io.dump(fitted(RandomForestClassifier(3, random_state=0), STATES), tmp_path / "model.skops")
    changed = rewritten(tmp_path / "model.skops", of_version)
    assert main(["compare", str(log), "--policy", f"m={changed}", "--policy", "u=uniform", "--json"]) == 0
    out, err = capsys.readouterr()
    said = (
        f"policy 'm': changed.skops was made with scikit-learn 1.3.0, and {sklearn.__version__} is installed; its "
        "probabilities may differ from those that it was made to give."
    )
    assert said in json.loads(out)["warnings"]
    assert err == ""


def test_a_model_that_another_version_cannot_load(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def old(text: str) -> str:
        return of_version(text).replace('"max_depth"', '"depth"').replace('"node_count"', '"nodes_"')

    skops_io.dump(fitted(DecisionTreeClassifier(), STATES), tmp_path / "model.skops")
    changed = rewritten(tmp_path / "model.skops", old)
    assert refusal(changed, tmp_path, capsys) == (
        f"podium: changed.skops was made with scikit-learn 1.3.0, and {sklearn.__version__} cannot load it\n\n"
        f"Hint: save the model again with scikit-learn {sklearn.__version__}, or install 1.3.0.\n"
    )
    alone = rewritten(changed, lambda text: text.replace("1.3.0", sklearn.__version__))
    assert refusal(alone, tmp_path, capsys) == (
        "podium: changed.skops cannot be loaded: KeyError: 'max_depth'\n\n"
        "Hint: save the model again with the installed versions of scikit-learn and skops.\n"
    )


def test_pickles_are_converted_by_the_command_that_is_shown(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    import pickle

    import joblib

    monkeypatch.chdir(tmp_path)
    model = fitted(DecisionTreeClassifier(random_state=0), STATES)
    (tmp_path / "a.pkl").write_bytes(pickle.dumps(model))
    joblib.dump(model, tmp_path / "b.joblib")
    for name, package in (("a.pkl", "pickle"), ("b.joblib", "joblib")):
        path, target = str(tmp_path / name), str(tmp_path / (name[0] + ".skops"))
        opened = f"open('{path}', 'rb')" if package == "pickle" else f"'{path}'"
        command = f"python -c \"import {package}, skops.io; skops.io.dump({package}.load({opened}), '{target}')\""
        assert refusal(tmp_path / name, tmp_path, capsys) == (
            f"podium: {name} is a pickle, and reading one can run any code\n\n"
            f"Hint: if you trust the file, convert it, and name the new one: {command}\n"
        )
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the file that the short command leaves open
            exec(command.split('"')[1], {})
        assert_allclose(load_skops(tmp_path / target).model.predict_proba(STATES), model.predict_proba(STATES))
