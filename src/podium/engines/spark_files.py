"""The files that a path names on Spark: Hadoop takes every name for a pattern, and gives names back as addresses."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import accumulate
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import unquote

from podium.data.columns import plain
from podium.data.connections import place
from podium.data.errors import PodiumError
from podium.data.invisible import visible
from podium.data.paths import ADDRESS, WEB, Found, Watch, check_local, exists, find_files
from podium.data.read import KINDS, PARQUET_ENDINGS, Pairs, check_text, flatten, type_cells

PATTERN = "\\*?[]{}"
WHOLE = ("tinyint", "smallint", "int", "bigint")
JSON_HINT = "write one JSON object per line."
PLAIN = 6  # digits of a fraction up to which Spark writes decimals without an exponent
LOCAL = re.compile(r"file:/*")


@dataclass(frozen=True)
class SparkFiles:
    """Files in the order of their names.

    Attributes
    ----------
    names : as podium orders and compares them
    paths : as Spark's readers take them
    folders : column -> what the folder of each file says
    watch : the files of this machine, which must stay as they are
    """

    names: Sequence[str]
    paths: Sequence[str]
    folders: Mapping[str, Sequence[str | None]]
    watch: Watch = field(default_factory=lambda: Watch(()))

    def place(self, address: str) -> int:
        """Which of the files Spark means."""
        return self.places[plain_name(address)]

    @cached_property
    def places(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.names)}

    def starts(self, sizes: Mapping[str, int]) -> dict[str, int]:
        """The number of the first row of each file, by the address that Spark gives it."""
        unknown = [address for address in sizes if plain_name(address) not in self.places]
        if unknown or len({*map(plain_name, sizes)}) < len(sizes):
            raise PodiumError(
                f"Spark reads other files than podium has found: {plain_name((unknown or list(sizes))[0])!r}",
                hint="rename the files: letters, digits, '-' and '_' are safe.",
            )
        ordered = sorted(sizes, key=self.place)
        return dict(zip(ordered, accumulate([0, *(sizes[address] for address in ordered)]), strict=False))

    def folder_columns(self) -> tuple[dict[str, str], list[tuple[Any, ...]]]:
        """The columns that folders give, each with its type in Spark, and their cells for each file."""
        typed = {name: type_cells([v or "" for v in values], False) for name, values in self.folders.items()}
        kinds = {name: {"i": "bigint", "f": "double"}.get(c.dtype.kind, "string") for name, c in typed.items()}
        return kinds, [tuple(plain(c[i]) for c in typed.values()) for i in range(len(self.names))]


def spark_files(session: Any, path: str) -> SparkFiles:
    """The files that a path names: on this machine where the session reads that, else wherever Spark finds them."""
    check_local(path, WEB)
    if reads_this_machine(session) and not ADDRESS.match(path) and (exists(Path(path)) or "{" not in path):
        return own_files(find_files(path, KINDS))
    return distant_files(session, path)


def reads_this_machine(session: Any) -> bool:
    """Whether a plain path is one of this machine; Spark Connect does not say, and its server may be elsewhere."""
    try:
        return str(session._jsc.hadoopConfiguration().get("fs.defaultFS")).startswith("file:")
    except Exception:
        return False


def own_files(found: Found) -> SparkFiles:
    names = [place(file.resolve() if ".." in file.parts else file) for file in found.files]
    for name in names:
        if ":" in name:
            raise PodiumError(f"Spark cannot open {name!r}: the name holds a colon", hint="rename it.")
    return SparkFiles(names, ["file://" + escaped(n) for n in names], found.folder_values(), Watch(found.files))


def distant_files(session: Any, path: str) -> SparkFiles:
    """A name that exists is that file or folder; only another one is a pattern."""
    from pyspark.errors import AnalysisException

    listing = session.read.format("binaryFile").option("recursiveFileLookup", True)
    try:
        names, base = sorted(map(plain_name, listing.load(escaped(path)).inputFiles())), path
    except AnalysisException:
        names = sorted(map(plain_name, listing.load(path).inputFiles()))
        parts = PurePosixPath(path).parts
        fixed = next((i for i, part in enumerate(parts) if any(c in part for c in PATTERN)), len(parts))
        base = str(PurePosixPath(*parts[:fixed]))
    names = [name for name in names if PurePosixPath(name).suffix.lower() in endings_of(path)]
    if not names:
        raise PodiumError(f"there are no files in {path!r}", hint="check the path.")
    below = [PurePosixPath(name.partition(plain_name(base).rstrip("/") + "/")[2]) for name in names]
    folders = Found(tuple(map(Path, below)), Path()).folder_values()
    return SparkFiles(names, [escaped(name) for name in names], folders)


def endings_of(path: str) -> tuple[str, ...]:
    """The endings of files that count: those of the kind of the path, or Parquet's for a folder."""
    ending = PurePosixPath(path).suffix.lower()
    return next((kind for kind in KINDS if ending in kind), PARQUET_ENDINGS)


def names_in(lines: Iterable[str], where: str) -> list[str]:
    """The columns of lines of JSON, in order; of two objects on a line, Spark would read only the first."""
    found: dict[str, None] = {}
    for line in lines:
        try:
            record = json.loads(line, object_pairs_hook=Pairs)
        except (ValueError, RecursionError) as error:
            reason = "it is nested too deeply" if isinstance(error, RecursionError) else str(error)
            raise PodiumError(f"{where} holds a line that is not valid JSON: {reason}", JSON_HINT) from error
        if not isinstance(record, Pairs):
            raise PodiumError(f"{where} holds a line that is no JSON object", JSON_HINT)
        found |= dict.fromkeys(name for name, _ in flatten(record))
    return list(found)


def clean_names(frame: Any) -> Any:
    """A frame with the names of its columns as `podium.data.read` reads them."""
    names = [visible(name) for name in frame.columns]
    return frame if names == frame.columns else frame.toDF(*names)


def as_texts(frame: Any, text: Sequence[str], where: str) -> Any:
    """A DataFrame with some columns as the texts that `podium.data.arrays.arrow_texts` writes."""
    from pyspark.sql import functions as F

    check_text(where, text, frame.columns)
    for one in [f for f in frame.schema.fields if f.name in text]:
        kind, column = one.dataType.simpleString(), F.col("`" + one.name.replace("`", "``") + "`")
        if kind == "boolean":
            frame = frame.withColumn(one.name, F.initcap(column.cast("string")))
        elif kind in WHOLE or (kind.startswith("decimal") and one.dataType.scale <= PLAIN):
            frame = frame.withColumn(one.name, column.cast("string"))
        elif kind != "string":
            raise PodiumError(
                f"{where}: the spark engine does not read the column {one.name!r} as text: it is {kind}",
                hint="write it as texts, or leave text= or --text out.",
            )
    return frame


def escaped(path: str) -> str:
    """A path as Hadoop reads just this one."""
    return "".join(f"\\{c}" if c in PATTERN else c for c in path)


def plain_name(address: str) -> str:
    """The path of a file of this machine, or the address of another, without the codes of an address."""
    return LOCAL.sub("/", unquote(address), count=1) if address.startswith("file:") else unquote(address)
