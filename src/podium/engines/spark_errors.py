"""Spark's errors as podium tells them."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from podium.data.errors import PodiumError

SIGNS = (
    ("No module named 'podium'", "podium is not installed where Spark's workers run Python",
     "install podium and its extra 'spark' there, or set PYSPARK_PYTHON to an environment that has it."),
    ("PYTHON_VERSION_MISMATCH", "Spark's workers run another Python than this one",
     "set PYSPARK_PYTHON to the same version on both sides."),
    ("No space left on device", "a disk that Spark sorts on is full",
     "make room, or set spark.local.dir to a larger disk."),
    ("MALFORMED_RECORD", "a line is not valid JSON", "write one JSON object per line."),
    ("CANNOT_MERGE", "the files have different types for one column", "give a column the same type in every file."),
    ("PATH_NOT_FOUND", "there is no such file", "check the path; every worker must be able to read it."),
    ("FileNotFoundException", "a file disappeared while it was read", "keep the files until the answer is there."),
    ("FILE_NOT_EXIST", "a file disappeared while it was read", "keep the files until the answer is there."),
    ("is not a Parquet file", "a file is not a whole Parquet file", "write the file again."),
    ("COLUMN_ALREADY_EXISTS", "a column appears twice", "give each column a name of its own; case does not count."),
    ("UNABLE_TO_INFER_SCHEMA", "there are no Parquet files", "check the path."),
)  # fmt: skip


@contextmanager
def explained(source: Any) -> Iterator[None]:
    """Spark's errors as podium tells them."""
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    root = logging.getLogger()
    root.addFilter(is_news)
    try:
        with warnings.catch_warnings():
            # Rows travel as Arrow; which pandas is there does not matter.
            warnings.filterwarnings("ignore", message="PySpark does not yet fully support pandas")
            yield
    except (PySparkException, Py4JError) as error:
        text = str(error)
        where = source if isinstance(source, str | Path) else "the DataFrame"
        for sign, meaning, hint in SIGNS:
            if sign in text:
                raise PodiumError(f"{where}: {meaning}", hint=hint) from error
        lines = [line for line in text.splitlines() if line.strip()]
        cause = next((line for line in reversed(lines) if "Error" in line and not line.startswith("\t")), lines[0])
        raise PodiumError(
            f"Spark cannot read {where}: {cause.strip()[:300]}", hint="the whole message is in Spark's own log."
        ) from error
    finally:
        root.removeFilter(is_news)


def is_news(record: logging.LogRecord) -> bool:
    """Py4J logs Ctrl-C and lost connections with a traceback before it raises them."""
    return not record.getMessage().endswith("while sending command.")
