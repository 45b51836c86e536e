"""Files as programs export them: most are answered at the first command, the others after one refusal.

`tests/messy` holds one small log as 55 kinds of exports have it. Each is asked with the command that a person would
write first. What is refused must name a command that goes on: that very command is run next.
"""

# ruff: noqa: E501
from __future__ import annotations

import json
import shlex
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest

import podium
from podium.command.cli import main
from podium.data.read import read_columns

MESSY = Path(__file__).parents[1] / "messy"
PLAIN = read_columns(MESSY / "semicolons.csv")
MEAN = float(np.mean(PLAIN["reward"]))
STATES = ("age", "region", "spend")
POLICIES = ("--policy", "call=constant:call", "--policy", "email=constant:email")


@dataclass(frozen=True)
class Messy:
    """A file, the options of the first command, and what a person expects of the answer."""

    file: str
    options: str = ""
    states: tuple[str, ...] = STATES
    rows: int = 60
    mean: float = MEAN  # of the rewards
    spend: float = float(np.mean(PLAIN["spend"]))  # of that state, where it has no gaps
    said: str = ""  # a part of what is said aloud
    refused: str = ""  # a part of the one refusal


ASKED = len(range(3, 60, 7))  # rows with a word for a gap
LEFT = np.delete(PLAIN["reward"], range(3, 60, 7))
FILES = [
    Messy("semicolons.csv"),
    Messy("tabs.txt"),
    Messy("windows_lines.csv"),
    Messy("decimal_commas.csv", said="Column 'spend': read decimal commas, such as"),
    Messy("thousands.csv", said="Column 'spend': read thousands separators, such as"),
    Messy("dollars.csv", said="Column 'spend': read thousands separators and currency ($), such as"),
    Messy("euros_after.csv", said="Column 'spend': read decimal commas and currency (€), such as"),
    Messy("spaces_in_thousands.csv", said="Column 'spend': read spaces between thousands, such as"),
    Messy("accounting.csv", spend=float(np.mean([-x if i % 9 == 0 else x for i, x in enumerate(PLAIN["spend"])])),
          said="Column 'spend': read thousands separators and parentheses for negative numbers, such as"),
    Messy("percent_propensity.csv", said="Column 'propensity': read percent, such as '50%' as 0.5"),
    Messy("percent_reward.csv", said="Column 'reward': read percent, such as '100%' as 1"),
    Messy("yes_no.csv", said="Column 'reward': 'Yes' counts as 1, 'No' as 0"),
    Messy("true_false.csv", said="Column 'reward': 'TRUE' counts as 1, 'FALSE' as 0"),
    Messy("won_lost.csv", said="Column 'reward': 'won' counts as 1, 'lost' as 0"),
    Messy("ja_nein.csv", said="Column 'reward': 'ja' counts as 1, 'nein' as 0"),
    Messy("empty_ages.csv", states=("age", "age missing", "region", "spend"),
          said="Column 'age': empty (9 rows) taken for missing; the state has the median"),
    Messy("na_ages.csv", states=("age", "age missing", "region", "spend"),
          said="Column 'age': '-' (3 rows), 'NULL' (3 rows), 'n/a' (3 rows) taken for missing"),
    Messy("excel_errors.csv", states=("age", "region", "spend", "spend missing"),
          said="Column 'spend': '#N/A' (5 rows), '#DIV/0!' (4 rows) taken for missing"),
    Messy("empty_regions.csv", said="Column 'region': empty (9 rows) taken for missing, a value of its own"),
    Messy("ids.csv", said="Not taken as state: customer_id (ids); --state COL takes a column as state"),
    Messy("dates.csv", said="Not taken as state: signup (dates); --state COL takes a column as state"),
    Messy("long_notes.csv", said="column 'notes' holds long texts"),
    Messy("title_above.csv", said="Skipped 1 line above the header, which is on line 3"),
    Messy("title_and_semicolons.csv", said="Skipped 1 line above the header, which is on line 2"),
    Messy("title_with_commas.csv", said="Skipped 1 line above the header, which is on line 2"),
    Messy("sep_line.csv", said="Skipped 1 line above the header, which is on line 2"),
    Messy("pandas_index.csv", said="Left out the first column, which has no name and numbers the rows"),
    Messy("unnamed_0.csv", said="Not taken as state: Unnamed: 0 (ids)"),
    Messy("trailing_separator.csv", said="Left out 1 empty column without a name at the end of the rows"),
    Messy("blank_rows_at_end.csv", said="Left out 2 rows without any value"),
    Messy("day_first_dates.csv", "--time when",
          said="Column 'when': read dates as day first, such as '02/01/2023' as 2023-01-02"),
    Messy("month_first_dates.csv", "--time when",
          said="Column 'when': read dates as month first, such as '01/02/2023' as 2023-01-02"),
    Messy("german_dates.csv", "--time when",
          said="Column 'when': read dates as day first, such as '02.01.2023' as 2023-01-02"),
    Messy("named_months.csv", "--time when",
          said="Column 'when': read dates as named months, such as '02-Jan-23' as 2023-01-02"),
    Messy("clock_times.csv", "--time when",
          said="Column 'when': read dates as day first, such as '02/01/2023 02:30 PM' as 2023-01-02 14:30:00"),
    Messy("spaces_in_names.csv", states=("Age", "Region", "Spend (EUR)")),
    Messy("latin_1.csv", said="latin_1.csv is Latin-1 (Windows-1252), not UTF-8; it was read as such"),
    Messy("utf_16.csv", said="utf_16.csv is UTF-16, not UTF-8; it was read as such"),
    Messy("utf_8_mark.csv"),
    Messy("packed.csv.gz"),
    Messy("packed.csv.zst"),
    Messy("packed.jsonl.gz"),
    Messy("plain.xlsx"),
    Messy("truth_values.xlsx", said="Column 'reward': 'true' counts as 1, 'false' as 0"),
    Messy("titled.xlsx", said="Skipped 1 line above the header, which is on line 3"),
    Messy("two_sheets.xlsx", "--sheet Data"),
    Messy("plain.ods"),
    # answered after one refusal
    Messy("own_names.csv", states=("Age", "Region", "Spend"), refused="own_names.csv has 2 problems:"),
    Messy("missing_rewards.csv", rows=60 - ASKED, mean=float(LEFT.mean()), said="Left out 9 rows of 60 (--drop-missing)",
          spend=np.nan, refused="column 'reward' must be a number; row 4 (line 5) holds nothing (9 rows)"),
    Messy("missing_actions.csv", rows=60 - ASKED, mean=float(LEFT.mean()), said="Left out 9 rows of 60 (--drop-missing)",
          spend=np.nan, refused="column 'action' must not be missing; row 4 (line 5) holds '-' (9 rows)"),
    Messy("unknown_success.csv", said="Column 'reward': 'renewed' counts as 1, 'expired' as 0",
          refused="column 'reward' holds words, and which of them is a success is not known:"),
    Messy("ambiguous_dates.csv", "--time when", said="Column 'when': read dates as %d/%m/%Y, such as '01/01/2023'",
          refused="column 'when' holds dates such as '01/01/2023', and the day or the month may be first"),
    Messy("mixed_ages.csv", refused="column 'age' mixes number and text; row 4 (line 5) holds 'over 80' (9 rows)"),
    Messy("typo_in_header.csv", refused="the log has no column 'action' for the action; 'acton' may be meant"),
    Messy("capital_roles.csv", states=("Age", "Region", "Spend"), refused="capital_roles.csv has 2 problems:"),
]  # fmt: skip


def test_every_file_of_the_folder_is_in_the_table() -> None:
    files = {path.name for path in MESSY.iterdir() if path.suffix != ".py" and path.is_file()}
    assert {messy.file for messy in FILES} == files
    assert sum(not messy.refused for messy in FILES) >= 32
    assert len(FILES) >= 40


@pytest.mark.parametrize("messy", FILES, ids=lambda messy: messy.file)
def test_messy_files_are_answered(
    messy: Messy, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    command = ["compare", str(MESSY / messy.file), *shlex.split(messy.options), *POLICIES, "--json"]
    code = main(command)
    out, err = capsys.readouterr()
    if messy.refused:
        assert code == 2
        assert not out
        assert messy.refused in err
        assert "Traceback" not in err
        program, *command = shlex.split(err.rpartition("\n\n  ")[2])
        assert program == "podium"
        assert main(command) == 0
        out, err = capsys.readouterr()
    else:
        assert code == 0, err
    answer = json.loads(out)
    assert answer["log"]["rows"] == messy.rows
    assert answer["log"]["state_columns"] == list(messy.states)
    assert not any(tmp_path.iterdir()), "something was written"
    said = [note["text"] for note in answer["log"].get("notes", [])]
    told = [*said, *answer["warnings"]]
    assert (any(messy.said in note for note in told)) if messy.said else said == [] or messy.refused, told


@pytest.mark.parametrize("messy", [m for m in FILES if not m.refused], ids=lambda messy: messy.file)
def test_values_are_those_that_were_meant(messy: Messy) -> None:
    words = shlex.split(messy.options)
    options = {words[0].removeprefix("--"): words[1]} if words else {}
    log = podium.read_log(MESSY / messy.file, **options)
    assert np.mean(log.rewards) == pytest.approx(messy.mean, rel=1e-12)
    assert list(log.actions) == list(PLAIN["action"])
    spend = next((c for h, c in log.state_columns.items() if h.startswith(("spend", "Spend"))), None)
    assert spend is not None
    if "spend missing" not in log.state_columns:
        assert np.mean(spend.astype(float)) == pytest.approx(messy.spend, rel=1e-12)
    if log.times is not None:
        assert (np.diff(log.times) > np.timedelta64(0)).all()
