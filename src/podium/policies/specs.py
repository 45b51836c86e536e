"""SPEC strings: policies named on the command line.

column:NAME · file.csv, .parquet, .jsonl · constant:ACTION · shares:A=.4,B=.6 · uniform · logged · sql:EXPRESSION ·
package.module:object · learned:package.module:object · model.skops · sb3:ALGO:model.zip · vw:predictions.txt

A SPEC means the same for every log. The bare name of a column also names it, unless it has the form of a SPEC.
"""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from importlib.machinery import PathFinder
from pathlib import Path
from types import ModuleType
from typing import Any

from podium.adapters import vowpal
from podium.adapters.sb3 import load_model
from podium.adapters.skops import load_skops, pickle_hint
from podium.data.errors import PodiumError, close_to, meant
from podium.data.facts import Fact
from podium.data.files import note_input
from podium.data.frames import ColumnTable
from podium.data.log import Log
from podium.data.paths import path_in
from podium.data.read import JSON_ENDINGS, PARQUET_ENDINGS, TEXT_ENDINGS, read_columns
from podium.policies.drafts import Policy
from podium.policies.shares import parse_shares

FORMS = (
    "column:NAME, file.csv, constant:ACTION, shares:A=.4,B=.6, uniform, logged, sql:EXPRESSION, "
    "package.module:object, learned:package.module:object, model.skops, sb3:ALGO:model.zip, vw:predictions.txt"
)
WORDS = ("uniform", "logged")
PREFIXES = ("column", "constant", "shares", "sql", "vw")
EXAMPLES = {  # what a prefix without its rest should look like
    "column": "column:NAME with a column of the log",
    "constant": "constant:ACTION with an action of the log",
    "shares": "shares:A=.4,B=.6 with actions of the log",
    "sql": "sql:EXPRESSION over the state columns",
    "vw": "vw:predictions.txt with the file of predictions",
    "learned": "learned:package.module:object with the estimator or function that learns",
}
PICKLES = (".pkl", ".pickle", ".joblib", ".dill", ".cloudpickle")
TABLES = (*TEXT_ENDINGS, *JSON_ENDINGS, *PARQUET_ENDINGS)


def parse_spec(spec: str, log: Log) -> Policy:
    """The policy that a SPEC string names, or else the column of that name."""
    head, _, rest = spec.partition(":")
    if not is_spec(spec):
        if spec in log.columns:
            return Policy(spec, kind="column")
        if is_member(spec) and not meant_spec(spec, ()):  # no such module: rather a misspelled SPEC
            return Policy(load_object(head, rest, "policy"))
        own = (
            f"write {EXAMPLES[head]}"
            if head in EXAMPLES
            else f"{meant_spec(spec, log.columns)}a SPEC is one of {FORMS}"
        )
        hint = f"{own}; or name a column of the log."
        raise PodiumError(f"unknown policy {spec!r}", hint=hint)
    if spec in WORDS:
        return Policy(kind=spec)
    if head in ("column", "constant", "sql"):
        return Policy(rest, kind=head)
    if head == "shares":
        return Policy(parse_shares(rest), kind="shares")
    if is_recipe(spec):  # made a policy before it is read, where that is possible
        return Policy(spec, kind="learned")
    if head == "sb3":
        return Policy(load_model(spec), kind="model")
    if head == "vw":
        return Policy(vowpal.read_predictions(rest, log), kind="distribution")
    ending = Path(spec).suffix.lower()
    if ending in PICKLES:
        raise refuse_pickle(Path(spec))
    if ending == ".skops":
        return Policy(load_skops(Path(spec)).model, kind="model")
    if ending in TABLES:
        texts = [h for h, c in log.state_columns.items() if c.dtype == object]
        columns = read_columns(spec)
        if texts and all(h in columns for h in texts):  # keys are read as the log reads them
            columns = read_columns(spec, texts)
        return Policy(ColumnTable(columns), kind="table")
    return Policy(load_object(head, rest, "policy"))


def is_spec(text: str) -> bool:
    """Whether a text is a SPEC by its form, whatever columns a log has: no header can change what a SPEC means."""
    head, _, rest = text.partition(":")
    if text in WORDS or head == "sb3" or (head in PREFIXES and rest) or is_recipe(text):
        return True
    if Path(text).suffix.lower() in (*PICKLES, ".skops", *TABLES):
        return True
    return is_member(text) and is_module(head.partition(".")[0])


def meant_spec(spec: str, columns: Collection[str]) -> str:
    """The beginning of a hint: the SPEC that was probably meant; nothing where none is near."""
    head, colon, rest = spec.partition(":")
    near = close_to(head, (*PREFIXES, "sb3", "learned")) if rest else None
    return f"did you mean {near + colon + rest!r}? " if near else meant(spec, (*WORDS, *columns))


def is_recipe(text: str) -> bool:
    """Whether a text has the form learned:package.module:object."""
    head, _, rest = text.partition(":")
    return head == "learned" and is_member(rest)


def is_member(text: str) -> bool:
    """Whether a text has the form package.module:object."""
    head, _, rest = text.partition(":")
    return bool(rest) and all(part.isidentifier() for part in head.split("."))


def is_module(top: str) -> bool:
    """Whether there is a module of this name, here or installed; a mere folder is not enough."""
    found = sys.modules.get(top) or PathFinder.find_spec(top, [*current_folder(), *sys.path])
    return found is not None and getattr(found, "origin", "") is not None


def shadowed_columns(policies: Mapping[str, Any], columns: Collection[str]) -> list[Fact]:
    """Warnings of columns that bear the name of a SPEC that was given."""
    return [
        Fact("SPEC and column", policy=name, spec=spec)
        for name, spec in policies.items()
        if isinstance(spec, str) and spec in columns and is_spec(spec)
    ]


def spec_warnings(policies: Mapping[str, Any], columns: Collection[str]) -> list[Fact]:
    """What should be said of policies that are named by SPECs."""
    found = shadowed_columns(policies, columns)
    for name, spec in policies.items():
        if is_model_file(spec):
            file = load_skops(Path(spec))
            if file.made_with:
                said = {"file": Path(spec).name, "made": file.made_with, "installed": file.installed}
                found.append(Fact("model of another version", policy=name, **said))
    return found


def check_models(specs: Iterable[Any]) -> None:
    """Load every model file that SPECs name, so that one that cannot be used is refused before any data is read."""
    for spec in specs:
        if is_model_file(spec):
            load_skops(Path(spec))
        elif isinstance(spec, str) and Path(spec).suffix.lower() in PICKLES and is_spec(spec):
            raise refuse_pickle(Path(spec))


def is_model_file(spec: Any) -> bool:
    """Whether a SPEC names a .skops file."""
    head, _, rest = spec.partition(":") if isinstance(spec, str) else ("", "", "")
    return bool(head) and not (head in (*PREFIXES, "sb3") and rest) and Path(spec).suffix.lower() == ".skops"


def refuse_pickle(path: Path) -> PodiumError:
    if not path.exists():
        return PodiumError(f"there is no file {str(path)!r}", hint="check the path of the model.")
    return PodiumError(f"{path.name} is a pickle, and reading one can run any code", hint=pickle_hint(path))


def file_of(spec: str) -> str:
    """The file that a SPEC reads; a name that belongs to no file where it reads none."""
    head, _, rest = spec.partition(":")
    if head == "sb3":
        return rest.partition(":")[2]
    if head in PREFIXES:
        return rest if head == "vw" else ""
    return spec if Path(spec).suffix or not rest else f"{head.replace('.', '/')}.py"


def spec_in(spec: str, folder: str) -> str:
    """A SPEC whose file is named from a folder, as it is named from the current one; others stay as they are.

    >>> spec_in("model.skops", "july"), spec_in("vw:p.txt", "july"), spec_in("constant:a.csv", "july")
    ('july/model.skops', 'vw:july/p.txt', 'constant:a.csv')
    """
    head, _, rest = spec.partition(":")
    if head == "sb3":
        algorithm, colon, model = rest.partition(":")
        return f"sb3:{algorithm}:{path_in(model, folder)}" if colon else spec
    if head == "vw" and rest:
        return f"vw:{path_in(rest, folder)}"
    if (head in PREFIXES and rest) or is_recipe(spec):
        return spec
    return path_in(spec, folder) if Path(spec).suffix.lower() in (*PICKLES, ".skops", *TABLES) else spec


def load_object(module: str, name: str, what: str) -> Any:
    """An object of a module in the current folder, or of an installed one; all files that this loads are inputs."""
    before = set(sys.modules)
    try:
        found: Any = import_module(module)
        for part in name.split("."):
            found = getattr(found, part)
    except (Exception, SystemExit) as error:  # a module may do anything when it is loaded
        reason = str(error) if isinstance(error, ImportError | AttributeError) else f"{type(error).__name__}: {error}"
        raise PodiumError(
            f"cannot load the {what} {module}:{name}: {reason}",
            hint="write package.module:object, with a module of the current folder or an installed one.",
        ) from error
    parts = module.split(".")
    named = {".".join(parts[:n]) for n in range(1, len(parts) + 1)}
    for loaded in named | (set(sys.modules) - before):
        note_input(getattr(sys.modules.get(loaded), "__file__", None) or "")
    return found


def import_module(module: str) -> ModuleType:
    """Import a module of the current folder, or an installed one; the folder serves this one import.

    While the module is loaded, it finds its neighbors in the folder, behind everything that is installed. Afterwards
    the folder is no longer searched: a file called numpy.py in it never takes the place of a package.
    """
    top = module.partition(".")[0]
    folder = current_folder()
    if not folder:
        return importlib.import_module(module)
    (here,) = folder
    others = [path for path in sys.path if (path or here) != here]
    own = PathFinder.find_spec(top, [here])
    if own is not None and own.origin is not None and is_elsewhere(top, here, others):
        raise ImportError(f"{top!r} is in the current folder and also the name of another module; rename the file")
    before = list(sys.path)
    sys.path[:] = [*others, here]
    importlib.invalidate_caches()
    try:
        return importlib.import_module(module)
    finally:
        sys.path[:] = before


def current_folder() -> list[str]:
    """The current folder, unless it was removed."""
    try:
        return [str(Path.cwd())]
    except OSError:
        return []


def is_elsewhere(top: str, here: str, others: Sequence[str]) -> bool:
    """Whether a name belongs to a module outside a folder: loaded, part of Python, or installed."""
    loaded = sys.modules.get(top)
    if loaded is not None:
        return not str(getattr(loaded, "__file__", None) or "").startswith(here + os.sep)
    if top in sys.stdlib_module_names:
        return True
    found = PathFinder.find_spec(top, others)
    return found is not None and found.origin is not None
