"""SPEC strings: policies named on the command line.

column:NAME · file.csv, .parquet, .jsonl · constant:ACTION · uniform · logged · sql:EXPRESSION ·
package.module:object · model.skops · sb3:ALGO:model.zip · vw:predictions.txt
"""

from __future__ import annotations

import importlib
import sys
from pathlib import Path
from typing import Any

from podium.adapters import vowpal
from podium.adapters.sb3 import load_model
from podium.command.signals import Ended
from podium.data.errors import PodiumError, needs
from podium.data.frames import ColumnTable
from podium.data.log import Log
from podium.data.read import JSON_ENDINGS, PARQUET_ENDINGS, TEXT_ENDINGS, read_columns
from podium.policies.drafts import Policy

FORMS = (
    "column:NAME, file.csv, constant:ACTION, uniform, logged, sql:EXPRESSION, package.module:object, model.skops, "
    "sb3:ALGO:model.zip, vw:predictions.txt"
)
PICKLES = (".pkl", ".pickle", ".joblib", ".dill", ".cloudpickle")


def parse_spec(spec: str, log: Log) -> Policy:
    """The policy that a SPEC string names."""
    if spec in ("uniform", "logged"):
        return Policy(kind=spec)
    head, _, rest = spec.partition(":")
    if head in ("column", "constant", "sql") and rest:
        return Policy(rest, kind=head)
    if head == "sb3":
        return Policy(load_model(spec), kind="model")
    if head == "vw" and rest:
        return Policy(vowpal.read_predictions(rest, log), kind="distribution")
    ending = Path(spec).suffix.lower()
    if ending in PICKLES:
        raise PodiumError(
            f"{Path(spec).name} is a pickle, and reading one can run any code",
            hint="save the model with skops.io.dump(model, 'model.skops'), or pass the object to podium.compare.",
        )
    if ending == ".skops":
        return Policy(load_skops(Path(spec)), kind="model")
    if ending in (*TEXT_ENDINGS, *JSON_ENDINGS, *PARQUET_ENDINGS):
        texts = [h for h, c in log.state_columns.items() if c.dtype == object]
        columns = read_columns(spec)
        if texts and all(h in columns for h in texts):  # keys are read as the log reads them
            columns = read_columns(spec, texts)
        return Policy(ColumnTable(columns), kind="table")
    if rest and all(part.isidentifier() for part in head.split(".")):
        return Policy(load_object(head, rest, "policy"))
    raise PodiumError(f"unknown policy {spec!r}", hint=f"a SPEC is one of {FORMS}; or name a column of the log.")


def load_object(module: str, name: str, what: str) -> Any:
    """An object of an importable module, looked for in the current folder first."""
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        found: Any = importlib.import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except Ended:
        raise
    except (Exception, SystemExit) as error:  # a module may do anything when it is loaded
        reason = str(error) if isinstance(error, ImportError | AttributeError) else f"{type(error).__name__}: {error}"
        raise PodiumError(
            f"cannot load the {what} {module}:{name}: {reason}",
            hint="write package.module:object; modules are looked for in the current folder first.",
        ) from error
    return found


def load_skops(path: Path) -> Any:
    """A scikit-learn model from a skops file, which cannot run code; types skops does not know are refused."""
    if not path.exists():
        raise PodiumError(f"there is no file {str(path)!r}", hint="check the path of the model.")
    with needs("skops", "sklearn", "reading a .skops model"):
        from skops import io
    try:
        unknown = io.get_untrusted_types(file=path)
    except Exception as error:
        raise PodiumError(
            f"{path.name} is not a skops file: {error}", hint="save the model with skops.io.dump."
        ) from error
    if unknown:
        raise PodiumError(
            f"{path.name} holds types that skops does not trust: {', '.join(unknown[:5])}",
            hint="load the model in Python yourself, and pass the object to podium.compare.",
        )
    return io.load(path, trusted=[])
