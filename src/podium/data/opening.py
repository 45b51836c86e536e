"""A log of any size: read into memory where it is small, left where it is where it is not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from typing import Any

from podium.data.arguments import checked, choice
from podium.data.arguments import text as named
from podium.data.eligible import RULES
from podium.data.errors import PodiumError, shown
from podium.data.exports import READING, read_log
from podium.data.frames import is_frame
from podium.data.log import Log
from podium.data.roles import assign_roles
from podium.data.scan import ScannedLog
from podium.data.unconverted import plain_states, refuse_values, roles_in_file
from podium.engines import Engine, check_engine
from podium.engines.choosing import choose_engine
from podium.engines.fits import Question


@checked(engine=named, **READING)
def scan_log(
    source: Any,
    *,
    engine: str = "auto",
    state: str | Sequence[str] | None = None,
    action: str = "action",
    reward: str = "reward",
    propensity: str | None = None,
    time: str | None = None,
    unit: str | None = None,
    actions: Sequence[Any] = (),
    text: Sequence[str] = (),
    eligible: str | None = None,
    ineligible: str = "refuse",
    success: Any = None,
    drop_missing: bool = False,
    date_format: str | None = None,
    sheet: str | None = None,
    decimal: str | None = None,
    also: Sequence[str] = (),
    **options: Any,
) -> Log | ScannedLog:
    """A log of any size: read into memory where it is small, left where it is where it is not.

    Parameters
    ----------
    source : a file, a pattern ("log/*.parquet"), a folder of Parquet files (also in hive partitions), a DuckDB
        database or relation, a Spark DataFrame, or a frame in memory (pandas, polars, arrow)
    engine : "memory", "duckdb", "spark", or "auto": memory for frames and for a file that is small by its rows, columns
        and actions, otherwise duckdb
    state, action, reward, propensity, time, unit, actions, text, eligible, ineligible, also : as in `podium.read_log`
    success, drop_missing, date_format, sheet, decimal : as in `podium.read_log`, for files that are read into memory
    options : of the engine; for duckdb `memory_limit`, `temp_dir`, `threads`, `table` and `progress`
    """
    check_engine(engine)
    roles: dict[str, Any] = {
        "state": state, "action": action, "reward": reward, "propensity": propensity, "time": time, "unit": unit,
        "eligible": eligible, "also": also,
    }  # fmt: skip
    values: dict[str, Any] = {"success": success, "drop_missing": drop_missing, "date_format": date_format}
    values |= {"sheet": sheet, "decimal": decimal}
    chosen = choose_engine(source, engine, action, Question(whole=any(x not in (None, False) for x in values.values())))
    refuse_values(values, chosen, is_frame(source))
    if chosen == "duckdb" and not (isinstance(source, str | Path) or hasattr(source, "columns")):
        raise PodiumError(
            f"a log cannot be read from {shown(source)}", hint="give a file, a folder, a DuckDB relation or a frame."
        )
    if chosen == "memory":
        if is_frame(source):
            return Log.from_frame(source, actions=actions, ineligible=ineligible, **roles)
        return read_log(source, actions=actions, text=text, ineligible=ineligible, **roles, **values)
    opened: Engine
    if chosen == "spark":
        opened = import_module("podium.engines.spark").SparkEngine(source, text=text, **options)
    else:
        from podium.engines.duckdb import DuckEngine

        opened = DuckEngine(source, text=text, **options)
    rule = choice(*RULES)("ineligible", ineligible)
    log = ScannedLog(opened, plain_states(opened, assign_roles(opened.headers(), **roles)), ineligible=rule)
    if isinstance(source, str | Path) and len(log):
        fitting, notes = roles_in_file(opened, log.roles, source, text)
        log = replace(log, roles=fitting, file=source, notes=notes)
    return log.with_action_space(actions) if len(actions) else log
