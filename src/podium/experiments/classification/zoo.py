"""Ten ordinary classifiers of scikit-learn as policies, or a set of your own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from podium.data.errors import PodiumError


def ten_classifiers(seed: int) -> dict[str, Any]:
    """Linear, probabilistic, by neighbours, by trees, by kernels; weak and strong."""
    from sklearn.ensemble import RandomForestClassifier
    from sklearn.linear_model import LogisticRegression, RidgeClassifier
    from sklearn.naive_bayes import GaussianNB
    from sklearn.neighbors import KNeighborsClassifier, NearestCentroid
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler
    from sklearn.svm import SVC
    from sklearn.tree import DecisionTreeClassifier

    return {
        "logistic regression": make_pipeline(StandardScaler(), LogisticRegression(max_iter=300)),
        "ridge": make_pipeline(StandardScaler(), RidgeClassifier()),
        "naive Bayes": GaussianNB(),
        "nearest centroid": make_pipeline(StandardScaler(), NearestCentroid()),
        "1 neighbour": make_pipeline(StandardScaler(), KNeighborsClassifier(1)),
        "15 neighbours": make_pipeline(StandardScaler(), KNeighborsClassifier(15)),
        "tree of depth 3": DecisionTreeClassifier(max_depth=3, random_state=seed),
        "tree": DecisionTreeClassifier(random_state=seed),
        "random forest": RandomForestClassifier(50, random_state=seed),
        "support vectors": make_pipeline(StandardScaler(), SVC()),
    }


def load_zoo(name: str, seed: int) -> Mapping[str, Any]:
    """Name -> classifier: `sklearn` is the ten above, `package.module:function` what a function of a seed returns."""
    if name == "sklearn":
        return ten_classifiers(seed)
    module, colon, function = name.partition(":")
    if not colon:
        raise PodiumError(f"no policies {name!r}", hint="use dlm, dlm-trained, sklearn, or package.module:function.")
    from podium.policies.specs import load_object

    make = load_object(module, function, "policies")
    zoo = make(seed) if callable(make) else make
    if not isinstance(zoo, Mapping) or len(zoo) < 2 or not all(hasattr(c, "fit") for c in zoo.values()):
        raise PodiumError(
            f"{name} gives no classifiers",
            hint='a function of a seed that returns {"name": classifier, ...}, two or more, is expected.',
        )
    return zoo
