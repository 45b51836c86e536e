"""scikit-learn models in .skops files: scikit-learn's own types and no others, so that no file can run code.

Such a file names the types of its parts. skops trusts most of scikit-learn; what it leaves out are internals of fitted
models, above all trees. podium adds these, by name, and looks at what the trees hold (`podium.adapters.trees`). No
functions are loaded but NumPy's and SciPy's own arithmetic and one check of scikit-learn's input.
"""

from __future__ import annotations

import re
import shlex
import warnings
from dataclasses import dataclass
from functools import lru_cache
from importlib import import_module
from pathlib import Path
from typing import Any
from zipfile import BadZipFile, ZipFile

from podium.adapters.trees import Damaged, check_trees
from podium.data.errors import PodiumError, needs
from podium.data.files import note_input
from podium.data.paths import fingerprint

PARTS = {  # internals of fitted models, all of whose types are plain data
    "sklearn._loss.link",
    "sklearn._loss.loss",
    "sklearn._loss._loss",
    "sklearn.ensemble._hist_gradient_boosting.binning",
    "sklearn.gaussian_process.kernels",
    "sklearn.linear_model._sgd_fast",
    "sklearn.model_selection._split",
    "sklearn.neural_network._stochastic_optimizers",
}
TYPES = {
    "sklearn.calibration._CalibratedClassifier",
    "sklearn.compose._column_transformer.make_column_selector",
    "sklearn.ensemble._hist_gradient_boosting.predictor.TreePredictor",
    "sklearn.metrics._scorer._PassthroughScorer",
    "sklearn.tree._tree.Tree",
    "sklearn.utils._bunch.Bunch",
}
# How gradient boosting with categories keeps the check of its other columns, and how steps name the types of columns.
OTHERS = {"functools.partial", "sklearn.utils.validation.check_array", "builtins.object", "numpy.dtype"}
OTHERS |= {f"numpy.{kind}" for kind in ("number", "integer", "floating", "inexact", "generic")}
FOREIGN = ("tests", "conftest", "_testing", "_mocking", "estimator_checks", "datasets", "externals", "_build_utils")
VERSION = re.compile(r'"_sklearn_version": \{[^{}]*"content": "\\"([^"\\]+)\\""')
LARGEST = 8 << 30  # bytes of an unpacked model
TRUST_HINT = "load the model in Python yourself, and pass the object to podium.compare."


@dataclass(frozen=True, eq=False)
class Loaded:
    """A model, and the version of scikit-learn that made it, where that is another one than the installed one."""

    model: Any
    made_with: str = ""
    installed: str = ""


def load_skops(path: Path) -> Loaded:
    """The model of a file, or why it cannot be loaded; a file is loaded once, as long as it stays the same."""
    if not path.exists():
        raise PodiumError(f"there is no file {str(path)!r}", hint="check the path of the model.")
    note_input(path)
    with needs("skops", "sklearn", "reading a .skops model"):
        import skops.io  # noqa: F401
    return loaded(path, fingerprint(path))


@lru_cache(maxsize=32)
def loaded(path: Path, mark: tuple[int, int, int]) -> Loaded:
    from skops import io

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of other versions, which `Loaded` tells
        try:
            made_with = version_in(path)
            named = io.get_untrusted_types(file=path)
        except Exception as error:  # whatever a file that is none makes of its reader
            raise PodiumError(
                f"{path.name} is not a skops file: {error}", hint="save the model with skops.io.dump."
            ) from error
        refuse_types(path, [name for name in named if not is_allowed(name)])
        try:
            model = io.load(path, trusted=named)
            check_trees(model)
        except Damaged as error:
            raise PodiumError(
                f"{path.name} holds a damaged model: {error}",
                hint="the file was changed after it was saved; save the model again with skops.io.dump.",
            ) from error
        except Exception as error:  # another version's attributes, or a file that was changed
            raise cannot_load(path, error, made_with) from error
    return Loaded(model, made_with, installed_version())


def version_in(path: Path) -> str:
    """The version of scikit-learn that made a model, where it is not the installed one; refuses what is too large."""
    try:
        with ZipFile(path) as file:
            size = sum(entry.file_size for entry in file.infolist())
            if size > LARGEST:
                raise ValueError(f"it unpacks to {size / 1e9:.1f} GB")
            made_with = VERSION.findall(file.read("schema.json").decode())
    except BadZipFile as error:
        raise ValueError("it is not a zip archive") from error
    return next((version for version in made_with if version != installed_version()), "")


def installed_version() -> str:
    import sklearn

    return str(sklearn.__version__)


def is_allowed(name: str) -> bool:
    """Whether a type that skops does not trust belongs to the fitted models of scikit-learn."""
    if name in TYPES | OTHERS:
        return True
    module, _, kind = name.rpartition(".")
    parts = module.split(".")
    if parts[0] != "sklearn" or not all(map(str.isidentifier, parts)) or any(part in FOREIGN for part in parts):
        return False
    try:
        found = getattr(import_module(module), kind, None)
    except ImportError:
        return False
    if not isinstance(found, type) or found.__module__ != module:  # a function, or a type from elsewhere
        return False
    from sklearn.base import BaseEstimator

    return module in PARTS or issubclass(found, BaseEstimator)


def refuse_types(path: Path, names: list[str]) -> None:
    if not names:
        return
    more = f" and {len(names) - 5} more" if len(names) > 5 else ""
    near = any(name.startswith("sklearn.neighbors.") for name in names)
    raise PodiumError(
        f"{path.name} holds what podium does not load from a file: {', '.join(names[:5])}{more}",
        hint="fit it with algorithm='brute', which saves no search tree." if near else TRUST_HINT,
    )


def cannot_load(path: Path, error: Exception, made_with: str) -> PodiumError:
    """Why skops or scikit-learn cannot build a model; often it was made by another version."""
    if made_with:
        return PodiumError(
            f"{path.name} was made with scikit-learn {made_with}, and {installed_version()} cannot load it",
            hint=f"save the model again with scikit-learn {installed_version()}, or install {made_with}.",
        )
    return PodiumError(
        f"{path.name} cannot be loaded: {type(error).__name__}: {error}",
        hint="save the model again with the installed versions of scikit-learn and skops.",
    )


def pickle_hint(path: Path) -> str:
    """How to turn a pickle into a skops file, for those who trust it."""
    package = {".joblib": "joblib", ".dill": "dill"}.get(path.suffix.lower(), "pickle")
    opened = f"{str(path)!r}" if package == "joblib" else f"open({str(path)!r}, 'rb')"
    code = f"import {package}, skops.io; skops.io.dump({package}.load({opened}), {str(path.with_suffix('.skops'))!r})"
    quoted = shlex.quote(code) if any(mark in code for mark in '"$`\\\\!') else f'"{code}"'
    return f"if you trust the file, convert it, and name the new one: python -c {quoted}"
