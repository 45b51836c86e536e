"""Frames that people bring (pandas, polars, arrow; DuckDB, Spark and lazy ones, collected) as columns, and back."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

import numpy as np

from podium.data.columns import INT64, Column, boxed, is_unequal, kind_of, repeated, to_array
from podium.data.errors import PodiumError, needs, shown
from podium.data.nested import spread

PACKAGES = ("pandas", "polars", "pyarrow", "modin", "cudf", "narwhals")
MOST_LAZY_ROWS = 1_000_000  # of a frame that lives elsewhere, and is fetched whole
SCANNED = ("duckdb", "pyspark")  # whose frames `podium.scan_log` takes as they are
EXTRAS = {"pandas": "sklearn", "polars": "", "pyarrow": "parquet"}


class ColumnTable(Mapping[str, Column]):
    """Several state columns of a file; becomes a pandas frame only when a policy asks for the states."""

    def __init__(self, columns: dict[str, Column]) -> None:
        self.columns = columns

    def __getitem__(self, name: str) -> Column:
        return self.columns[name]

    def __iter__(self) -> Any:
        return iter(self.columns)

    def __len__(self) -> int:
        return len(self.columns)


class LazyColumns(Mapping[str, Column]):
    """Named columns, each made when it is asked for."""

    def __init__(self, names: Iterable[str], make: Callable[[str], Column]) -> None:
        self.names, self.make = dict.fromkeys(names), make
        self.made: dict[str, Column] = {}

    def __getitem__(self, name: str) -> Column:
        if name not in self.names:
            raise KeyError(name)
        if name not in self.made:
            self.made[name] = self.make(name)
        return self.made[name]

    def __iter__(self) -> Any:
        return iter(self.names)

    def __len__(self) -> int:
        return len(self.names)


def is_frame(thing: Any) -> bool:
    """Whether a thing is a table with named columns."""
    if isinstance(thing, ColumnTable):
        return True
    return package_of(thing) in PACKAGES and hasattr(thing, "shape") and hasattr(thing, "columns")


def package_of(thing: Any) -> str:
    """The package that a thing comes from: for a class derived from a frame's, that of the frame."""
    packages = [kind.__module__.split(".")[0] for kind in type(thing).__mro__]
    return next((package for package in packages if package in PACKAGES), packages[0])


def frame_names(frame: Any) -> list[Any]:
    """The names of a frame's columns, as the frame knows them."""
    return list(frame.column_names if package_of(frame) == "pyarrow" else frame.columns)


def take_rows(states: Any, rows: Any) -> Any:
    """Some rows of an array or a frame."""
    if isinstance(states, ColumnTable):
        return ColumnTable({name: column[rows] for name, column in states.columns.items()})
    if not is_frame(states):
        return states[rows]
    import narwhals as nw

    table = nw.from_native(states, eager_only=True)
    return table[rows if isinstance(rows, slice) else rows.tolist(), :].to_native()


def copy_of_frame(frame: Any) -> Any:
    """A frame that shares no memory with another, nor with the arrays that an arrow table was made of."""
    package, rows = package_of(frame), np.arange(len(frame))
    if package == "pyarrow":
        return frame.take(rows)
    if package == "polars":
        return frame[rows]
    copy = frame.copy() if hasattr(frame, "copy") else frame.clone()
    for i, kind in enumerate(getattr(copy, "dtypes", ()) if package == "pandas" else ()):
        if type(kind).__name__ == "ArrowDtype":
            copy.isetitem(i, copy.iloc[:, i].array.take(rows))
    return copy


def frame_to_columns(frame: Any) -> dict[str, Column]:
    """The columns of a frame or a dict by name; lists of numbers and objects become several columns."""
    if isinstance(frame, ColumnTable):
        return frame.columns
    if isinstance(frame, Mapping):
        return named_arrays(frame)
    import narwhals as nw

    if is_frame(frame):
        check_names(frame_names(frame))
    try:
        table = nw.from_native(without_dictionaries(frame) if package_of(frame) == "pyarrow" else frame)
    except TypeError as error:
        raise PodiumError(
            f"columns cannot be read from {type(frame).__module__}.{type(frame).__name__}",
            hint="give a pandas, polars or Spark frame, an arrow table or a DuckDB relation.",
        ) from error
    if isinstance(table, nw.LazyFrame):
        table = collect(table, package_of(frame))
    named = zip(map(str, table.columns), table.iter_columns(), strict=True)
    return spread({name: series_to_array(column, name) for name, column in named})


def named_arrays(columns: Mapping[Any, Any]) -> dict[str, Column]:
    """Columns in whatever form, by the text of their headers; lists of numbers and objects become several columns."""
    check_names(list(columns))
    return spread({str(name): to_array(values) for name, values in columns.items()})


def check_names(names: Sequence[Any]) -> None:
    """Every column of a frame has one name, and a name of its own; a number is taken as the text of it."""
    if any(isinstance(name, tuple) for name in names):
        raise PodiumError(
            "the frame has headers of several levels",
            hint="join them: frame.columns = ['_'.join(map(str, names)) for names in frame.columns].",
        )
    for i, name in enumerate(names):
        if name is None or name == "" or is_unequal(name):
            raise PodiumError(f"column {i + 1} of the frame has no name", hint="give every column a header.")
    if (twice := repeated(map(str, names))) is not None:
        raise PodiumError(f"the column {twice!r} appears twice", hint="give each column a name of its own.")


def without_dictionaries(table: Any) -> Any:
    """An arrow table with categories as plain columns: as an array, a gap among them would be the last category."""
    import pyarrow as pa

    for i, field in enumerate(table.schema):
        if pa.types.is_dictionary(field.type):
            table = table.set_column(i, field.name, table.column(i).cast(field.type.value_type))
    return table


def collect(lazy: Any, package: str) -> Any:
    """The rows of a frame that lives elsewhere, if they are few enough to be fetched."""
    with needs("pyarrow", "parquet", f"a frame of {package}"):
        import pyarrow  # noqa: F401
    table = lazy.head(MOST_LAZY_ROWS + 1).collect("pyarrow")
    if len(table) > MOST_LAZY_ROWS:
        raise PodiumError(
            f"the frame of {package} has more than {MOST_LAZY_ROWS:,} rows, too many to fetch",
            hint=(
                "use podium.scan_log(frame), which leaves its rows where they are."
                if package in SCANNED
                else "write it as Parquet and use podium.scan_log(path)."
            ),
        )
    return table


def series_to_array(series: Any, name: str) -> Column:
    """One column of a frame as an array; a null is None or nan."""
    import narwhals as nw

    if series.dtype == nw.Struct:  # whose members would lose their names
        return boxed(series.to_list())
    try:
        array: Column = np.asarray(series.to_numpy())
    except (
        Exception
    ):  # every library has its own error for a type that NumPy has not, such as whole numbers of 128 bits
        try:
            array = to_array(series.to_list())
        except Exception as error:
            raise PodiumError(
                f"the column {name!r} is of a type that podium does not read: {series.dtype}",
                hint="convert it to numbers, texts or times first.",
            ) from error
    return array


def columns_to_frame(columns: Mapping[str, Column], backend: str) -> Any:
    """Named columns as a frame of "pandas", "polars" or "pyarrow"."""
    if not isinstance(backend, str) or backend not in EXTRAS:
        raise PodiumError(f"unknown frame library {shown(backend)}", hint="use one of " + ", ".join(EXTRAS) + ".")
    with needs(backend, EXTRAS[backend], f"a {backend} frame"):
        __import__(backend)
    import narwhals as nw

    lists = {name: same_kind(column.tolist()) if column.dtype == object else column for name, column in columns.items()}
    return nw.from_dict(lists, backend=backend).to_native()  # type: ignore[arg-type]


def apart(taken: Iterable[str], columns: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """Columns beside others of a frame: one whose name is taken is called after its kind.

    >>> apart(["rows"], {"new": 1, "rows": 2}, "policy")
    {'new': 1, 'policy:rows': 2}
    """
    used, named = {*taken, *columns}, {}
    for name, column in columns.items():
        own = name
        while own in taken or (own != name and own in used):
            own = f"{kind}:{own}"
        named[own] = column
        used.add(own)
    return named


def rows_to_frame(rows: Sequence[Mapping[str, Any]], backend: str) -> Any:
    """Rows with the same keys as a frame; None becomes nan."""
    columns = {}
    for key in rows[0]:
        cells = [np.nan if row[key] is None else row[key] for row in rows]
        columns[key] = np.array(cells, dtype=object if isinstance(cells[0], str) else None)
    return columns_to_frame(columns, backend)


def same_kind(values: list[Any]) -> list[Any]:
    """What frames can hold in one column: values of one kind, with gaps; a mixture becomes texts."""
    absent = [x is None or is_unequal(x) for x in values]
    present = [x for x, gap in zip(values, absent, strict=True) if not gap]
    huge = any(isinstance(x, int) and x not in INT64 for x in present)
    if huge or len({kind_of(x) for x in present}) > 1:
        return [None if gap else str(x) for x, gap in zip(values, absent, strict=True)]
    return values
