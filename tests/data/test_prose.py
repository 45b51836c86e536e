"""Long texts are a state only where they are asked for, on every engine, and it is said aloud."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from pyarrow import parquet

import podium
from podium import Log, PodiumError
from podium.data.prose import prose_length, state_options

WORDS = ["the", "sea", "boat", "storm", "light", "harbor", "old", "wind", "writes", "about", "with", "far"]
RNG = np.random.default_rng(1)
PROMPTS = [" ".join(RNG.choice(WORDS, 20)) for _ in range(120)]
TABLE: dict[str, Any] = {
    "prompt": PROMPTS,
    "topic": ["xyz"[i % 3] for i in range(120)],
    "length": [len(p) for p in PROMPTS],
    "action": ["ab"[i % 2] for i in range(120)],
    "reward": RNG.random(120).round(3).tolist(),
}
COLUMNS: dict[str, tuple[Any, bool]] = {
    "prompts": (PROMPTS, True),
    "with gaps": ([None, *PROMPTS], True),
    "with nan": ([np.nan, *PROMPTS], True),
    "sentences that differ": ([f"call {i} me" for i in range(40)], True),
    "few sentences": ([f"call {i} me" for i in range(5)], False),
    "names of two words": ([f"Ann {i}" for i in range(40)], False),
    "long categories": (["a leaflet on vaccination in pregnancy and while breastfeeding", "b" * 60] * 30, False),
    "short codes": (["x", "y"] * 30, False),
    "numbers": (list(range(40)), False),
    "numbers among texts": ([1, *PROMPTS], False),
    "nothing": ([None, None], False),
}


@pytest.mark.parametrize("kind", COLUMNS)
def test_which_columns_hold_long_texts(kind: str) -> None:
    values, long = COLUMNS[kind]
    column = np.empty(len(values), dtype=object)
    column[:] = values
    assert (prose_length(column) is not None) == long


def written(folder: Path, ending: str) -> Path:
    path = folder / f"log.{ending}"
    if ending == "parquet":
        parquet.write_table(pa.table(TABLE), path)
    elif ending == "csv":
        pd.DataFrame(TABLE).to_csv(path, index=False)
    else:
        pd.DataFrame(TABLE).to_json(path, orient="records", lines=True)
    return path


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_every_engine_leaves_prompts_out_and_says_so(engine: str, ending: str, tmp_path: Path) -> None:
    log = podium.scan_log(written(tmp_path, ending), engine=engine)
    result = podium.compare(log, {"a": "constant:a", "u": "uniform"})
    assert list(result.log.state_columns) == ["topic", "length"]
    median = int(np.median([len(p) for p in PROMPTS]))
    assert result.warnings[0] == (
        f"column 'prompt' holds long texts (median: {median} characters), so it is not part of the state. To include "
        "it: --state topic --state length --state prompt"
    )
    assert result.to_dict()["warning_facts"][0]["code"] == "long text"
    assert podium.diagnose(log, {"a": "constant:a", "u": "uniform"}).warnings[0] == result.warnings[0]


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_prompt_that_is_named_is_the_state(engine: str, tmp_path: Path) -> None:
    log = podium.scan_log(written(tmp_path, "csv"), engine=engine, state=["topic", "prompt"])
    assert list(log.state_columns) == ["topic", "prompt"]
    result = podium.compare(log, {"a": "constant:a", "u": "uniform"})
    assert not [w for w in result.warnings if "long texts" in w]


def test_states_that_are_given_as_such_are_kept() -> None:
    log = Log({"prompt": PROMPTS, "topic": TABLE["topic"]}, TABLE["action"], TABLE["reward"])
    assert list(log.state_columns) == ["prompt", "topic"]


@pytest.mark.parametrize("engine", ["memory", "duckdb"])
def test_a_log_of_prompts_alone_is_refused_with_the_way_on(engine: str, tmp_path: Path) -> None:
    path = tmp_path / "log.parquet"
    parquet.write_table(pa.table({h: TABLE[h] for h in ("prompt", "action", "reward")}), path)
    with pytest.raises(PodiumError) as error:
        podium.scan_log(path, engine=engine)
    assert str(error.value) == (
        "every column that could be the state holds long texts: 'prompt'\n\nHint: add what is known before the action "
        "as columns, such as an embedding of the text (a list of numbers), or take each text as a state of its own: "
        "--state prompt."
    )
    assert podium.scan_log(path, engine=engine, state="prompt").n_states == len(set(PROMPTS))


def test_options_that_take_a_column_as_state_too() -> None:
    assert state_options(("age",), "note") == "--state age --state note"
    vectors = tuple(f"e[{j}]" for j in range(384))
    assert state_options(vectors, "note") == "--state e --state note"
    assert state_options(tuple("abcd"), "note") == "--state note, and --state for every other state column"
