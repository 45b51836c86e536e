"""Files as programs export them: most are answered at the first command, the others after one refusal.

`tests/messy` holds one small log as many kinds of exports have it. Each is asked with the command that a person would
write first. What is refused must name a command that goes on: that very command is run next.
"""

# ruff: noqa: E501
from __future__ import annotations

import json
import shlex
import zipfile
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
    Messy("trailing_separator.csv", said="Left out 1 empty column without a name"),
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
    Messy("utf_16_big_endian.csv", said="utf_16_big_endian.csv is UTF-16, not UTF-8; it was read as such"),
    Messy("utf_16_without_mark.csv", said="utf_16_without_mark.csv is UTF-16, not UTF-8; it was read as such"),
    Messy("utf_8_mark.csv"),
    Messy("pipes.csv"),
    Messy("spacer_column.csv", said="Left out 1 empty column without a name"),
    Messy("total_row.csv", said="Left out the last row (line 62), which holds totals"),
    Messy("zip_codes.csv", states=(*STATES, "zip")),
    Messy("excel_days.csv", said="Not taken as state: Signup Date (dates); --state COL takes a column as state"),
    Messy("decimals_of_outcomes.csv"),
    Messy("workbook_called.csv"),
    Messy("packed.csv.gz"),
    Messy("packed.csv.zst"),
    Messy("packed.jsonl.gz"),
    Messy("plain.xlsx"),
    Messy("truth_values.xlsx", said="Column 'reward': 'true' counts as 1, 'false' as 0"),
    Messy("titled.xlsx", said="Skipped 1 line above the header, which is on line 3"),
    Messy("two_sheets.xlsx", said="Read the sheet 'Data'; --sheet names another of 'Log'"),
    Messy("plain.ods"),
    Messy("sap_minus.csv", spend=float(np.mean([-x if i % 9 == 0 else x for i, x in enumerate(PLAIN["spend"])])),
          said="Column 'spend': read decimal commas and a minus after the number, such as"),
    Messy("thousand_points.csv", states=(*STATES, "fee"),
          said="Column 'fee': read points between thousands, such as '1.001' as 1001"),
    Messy("abbreviated.csv", states=(*STATES, "income"),
          said="Column 'income': read currency ($) and abbreviations (K), such as '$7.9K' as 7900"),
    Messy("units.csv", states=(*STATES, "weight"), said="Column 'weight': read a unit (kg), such as '109 kg' as 109"),
    Messy("lengths.csv", states=(*STATES, "handled"),
          said="Column 'handled': read hours:minutes:seconds as seconds, such as '00:59:30' as 3570"),
    Messy("indian.csv", states=(*STATES, "income"),
          said="Column 'income': read thousands separators and currency (₹), such as '₹4,56,789.50' as 456789.5"),
    Messy("both_signs.csv", said="Column 'spend': read decimal commas and points, such as"),
    Messy("spellings_of_yes.csv", said=" counts as 1, "),
    Messy("dutch.csv", said="Column 'reward': 'Ja' counts as 1, 'Nee' as 0"),
    Messy("wahr_falsch.csv", said="Column 'reward': 'WAHR' counts as 1, 'FALSCH' as 0"),
    Messy("check_marks.csv", said="Column 'reward': '✓' counts as 1, '✗' as 0"),
    Messy("out_of_five.csv", states=(*STATES, "stars"), said="Column 'stars': read a unit (/5), such as '5/5' as 5"),
    Messy("mysql.tsv", states=("age", "age missing", "region", "spend"),
          said=r"Column 'age': '\\N' (9 rows) taken for missing; the state has the median"),
    Messy("epoch.csv", said="Not taken as state: event_ms (dates); --state COL takes a column as state"),
    Messy("mail_addresses.csv", said="Not taken as state: contact (ids); --state COL takes a column as state"),
    Messy("capital_roles.csv", states=("Age", "Region", "Spend"), said="Column 'Action' is the action"),
    Messy("capital_propensity.csv", said="Column 'Propensity' is the propensity"),
    Messy("comment_lines.csv", said="Skipped 3 lines above the header, which is on line 5"),
    Messy("note_below.csv", said="Left out 1 row below the table, from line 63 on: 'Generated on 2024-09-01'"),
    Messy("note_below.xlsx", said="Left out 1 row below the table, from line 63 on: 'Source: CRM, exported by Ann'"),
    Messy("account_total.csv", said="Left out the last row (line 62), which holds totals"),
    Messy("ruler.txt", said="Left out 1 row below the table, from line 63 on: '(60 rows)'"),
    Messy("list.json"),
    Messy("wrapped.json"),
    Messy("pandas.json"),
    Messy("hidden_sheet.xlsx"),
    Messy("invisible_names.csv",
          said="Removed characters that do not show from the names of these columns: 'age', 'spend', 'action'"),
    Messy("invisible_labels.csv",
          said="Column 'action': labels that look the same were merged into 'call', 'email', by removing spaces and "
               "characters that do not show (45 rows changed)"),
    Messy("slashes_and_months.csv", "--time when",
          said="Column 'when': read dates as named months, such as '02/Jan/23' as 2023-01-02"),
    Messy("months_in_words.csv", "--time when",
          said="Column 'when': read dates as named months, such as 'Jan 02, 2023' as 2023-01-02"),
    Messy("utc.csv", "--time when",
          said="Column 'when': read dates as year first, such as '2023-01-02 10:00:00 UTC' as 2023-01-02 10:00:00"),
    Messy("web_log.csv", "--time when", said="such as '02/Jan/2023:10:00:00 +0200' as 2023-01-02 08:00:00"),
    Messy("recorded_after.csv", states=(*STATES, "sales region"),
          said="Not taken as state: 'Stage', 'revenue', 'IsWon', which may have been recorded after the action; "
               "--state COL takes a column as state"),
    Messy("churned.csv", "--reward churned",
          said="Column 'churned': more of it may be worse; if so, add --lower-is-better"),
    Messy("sentinel.csv", states=(*STATES, "visits"),
          said="Column 'visits' holds -999 in 7 rows, far from all other values; if that stands for a missing value"),
    Messy("codes.csv", "--reward converted", mean=2 - MEAN,
          said="Column 'converted' holds only 1 and 2, which may be codes of yes and no; --success 1 counts 1 as 1"),
    Messy("mac.zip", said="Read 'export/log.csv' inside mac.zip"),
    Messy("gzip_called.csv", said="gzip_called.csv is gzip inside; it was unpacked"),
    Messy("zstd_called.csv", said="zstd_called.csv is zstd inside; it was unpacked"),
    Messy("parquet_called.csv", said="parquet_called.csv is Parquet inside; it was read as such"),
    Messy("empty_header.csv", said="Not taken as state: column 4 (no name in the file); --state COL takes a column"),
    Messy("equal_columns.csv", said="Two columns are called 'age' and are equal; one of them was kept"),
    Messy("same_names.csv", said="Two columns are called 'age' and differ; the second is called 'age (2)'"),
    Messy("import_ids.csv", said="Left out 2 rows of labels below the header (lines 2 to 3)"),
    Messy("response_row.csv", said="Left out 1 row of labels below the header (line 2)"),
    Messy("header_again.csv", said="Left out 1 row of labels below the header (line 2)"),
    # answered after one refusal
    Messy("reward_twice.csv", said="Not taken as state: reward (2) (its name is there twice)",
          refused="two columns are called 'reward' and differ; the reward may be 'reward (1)' or 'reward (2)'"),
    Messy("open_thousands.csv", states=(*STATES, "fee"), said="Column 'fee': read points between thousands, such as",
          refused="column 'fee' holds numbers such as '1.001', and the point may separate thousands or decimals"),
    Messy("marks_alone.csv", said="Column 'reward': 'X' counts as 1, empty (",
          refused="column 'reward' holds 'X' ("),
    Messy("three_outcomes.csv", said="Column 'reward': 'Good' counts as 1, ",
          refused="column 'reward' holds words, and which of them is a success is not known: "),
    Messy("converted_at.csv", said="Not taken as state: 'converted_at', which may have been recorded after", refused="converted_at.csv has 2 problems:"),
    Messy("own_names.csv", states=("Age", "Region", "Spend"), refused="own_names.csv has 2 problems:"),
    Messy("clinic.csv", states=("Patient Age", "Patient Age missing", "Spend"), rows=59,
          mean=float(np.delete(PLAIN["reward"], 11).mean()), said="Column 'Recovered': 'Yes' counts as 1, 'No' as 0",
          spend=np.nan, refused="clinic.csv has 3 problems:"),
    Messy("clinic.xlsx", states=("Patient Age", "Patient Age missing", "Spend"), rows=59,
          mean=float(np.delete(PLAIN["reward"], 11).mean()), said="Column 'Recovered': 'Yes' counts as 1, 'No' as 0",
          spend=np.nan, refused="clinic.xlsx has 3 problems:"),
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


RULE = "rule=sql:CASE WHEN {} > 60 THEN 'call' ELSE 'email' END"
QUOTED_RULE = RULE.format('"Patient Age"')


def test_the_clinic_is_answered_after_one_refusal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "clinic.csv").write_bytes((MESSY / "clinic.csv").read_bytes())
    monkeypatch.chdir(tmp_path)
    asked = ["compare", "clinic.csv", "--policy", "now=logged", "--policy", RULE.format("Patient Age")]
    assert main(asked) == 2
    out, err = capsys.readouterr()
    settings = ["--action", "Treatment Given", "--reward", "Recovered", "--time", "Visit Date", "--drop-missing"]
    goes_on = [*asked[:-1], QUOTED_RULE, *settings, "--behavior", "estimate"]
    assert out == ""
    assert err == (
        "podium: clinic.csv has 5 problems:\n"
        "- the log has no column 'action' for the action; 'Treatment Given' may be meant\n"
        "- the log has no column 'reward' for the reward; 'Recovered' may be meant\n"
        "- column 'Recovered' must be a number; row 12 (line 13) holds nothing (1 row)\n"
        "- policy 'now' is the behaviour policy, and the log does not say what that is\n"
        "- policy 'rule': the SQL uses a column whose name needs double quotes: "
        "CASE WHEN \"Patient Age\" > 60 THEN 'call' ELSE 'email' END\n\n"
        f"Hint: This command goes on:\n\n  {shlex.join(['podium', *goes_on])}\n"
    )
    assert main(shlex.split(err.rpartition("\n\n  ")[2])[1:]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    answer, *_, noticed, method = out.split("\n\n")
    assert "cannot be told apart" in answer or "is better than" in answer
    assert "by: V(a) - V(b)" in out
    assert method.startswith(
        "Log (memory): 59 rows, 59 distinct (state, action), 59 states, 2 actions,\n"
        "  estimated propensities; state: Patient Age, Patient Age missing, Spend (3\n"
        "  columns)\n"
    )
    assert noticed == (
        "Column 'Recovered': 'Yes' counts as 1, 'No' as 0\n"
        "Column 'Visit Date': read dates as day first, such as '02/01/2023' as 2023-01-02\n"
        "Left out 1 row of 60 (--drop-missing): column 'Recovered' is missing, empty (1\n"
        "  row)\n"
        "Not taken as state: Patient ID (ids); --state COL takes a column as state\n"
        "Column 'Patient Age': 'n/a' (2 rows), empty (1 row) taken for missing; the state\n"
        "  has the median 50 there, and 'Patient Age missing' marks these rows\n"
        "The estimated propensities are taken for the logger's habits, which assumes that\n"
        "  whatever the logger knew of the rewards stands in the state columns"
    )
    assert [path.name for path in tmp_path.iterdir()] == ["clinic.csv"]


@pytest.mark.parametrize("name", ["Patient Age", "patient age", "patient_age"])
def test_what_is_wrong_with_policies_alone_is_told_at_once(
    name: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(MESSY)
    asked = ["compare", "clinic.csv", "--action", "Treatment Given", "--reward", "Recovered", "--drop-missing"]
    asked += ["--policy", "now=logged", "--policy"]
    assert main([*asked, RULE.format(name)]) == 2
    out, err = capsys.readouterr()
    assert (out, err) == (
        "",
        "podium: clinic.csv has 2 problems:\n"
        "- policy 'now' is the behaviour policy, and the log does not say what that is\n"
        "- policy 'rule': the SQL uses a column whose name needs double quotes: "
        "CASE WHEN \"Patient Age\" > 60 THEN 'call' ELSE 'email' END\n\n"
        f"Hint: This command goes on:\n\n  {shlex.join(['podium', *asked, QUOTED_RULE, '--behavior', 'estimate'])}\n",
    )
    assert main(shlex.split(err.rpartition("\n\n  ")[2])[1:]) == 0


def test_the_clinic_is_checked_before_any_role_is_named(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(MESSY)
    assert main(["check", "clinic.csv"]) == 0
    out, err = capsys.readouterr()
    assert err == ""
    assert (
        out
        == """\
clinic.csv: 60 rows, 6 columns

Columns
  column           role      why
  Patient ID       left out  it holds ids: no state unless you name it
  Visit Date       time      the only column of dates
  Patient Age      state     every column that has no other role
  Spend            state     every column that has no other role
  Treatment Given  action    by a word of its name
  Recovered        reward    by its name

Column 'Recovered': 'Yes' counts as 1, 'No' as 0
Column 'Visit Date': read dates as day first, such as '02/01/2023' as 2023-01-02
Problem: the log has no column 'action' for the action; 'Treatment Given' may be
  meant
Problem: the log has no column 'reward' for the reward; 'Recovered' may be meant
Problem: column 'Recovered' must be a number; row 12 (line 13) holds nothing (1
  row)

This command compares:

  podium compare clinic.csv --policy 'always email=constant:email' --policy 'always call=constant:call' \
--action 'Treatment Given' --reward Recovered --time 'Visit Date' --drop-missing
"""
    )
    assert main(shlex.split(out.rpartition("\n\n  ")[2])[1:]) == 0


@pytest.mark.parametrize(
    ("file", "said"),
    [
        (
            "open_thousands.csv",
            "column 'fee' holds numbers such as '1.001', and the point may separate thousands or decimals\n\n"
            "Hint: write --decimal , if '1.001' is 1001, or --decimal . if it is 1.001. This command goes on:\n\n"
            "  podium compare open_thousands.csv {} --decimal ,\n",
        ),
        (
            "marks_alone.csv",
            "column 'reward' holds 'X' (27 rows) or nothing (33 rows)\n\n"
            "Hint: write --success X if nothing means a failure; otherwise fill the gaps. This command goes on:\n\n"
            "  podium compare marks_alone.csv {} --success X\n",
        ),
        (
            "three_outcomes.csv",
            "column 'reward' holds words, and which of them is a success is not known: 'Bad' (30 rows), "
            "'Good' (24 rows), 'Offered' (6 rows)\n\n"
            "Hint: name the value that counts as 1: --success Good; every other value counts as 0. "
            "This command goes on:\n\n  podium compare three_outcomes.csv {} --success Good\n",
        ),
    ],
)
def test_what_cannot_be_known_is_asked(
    file: str, said: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(MESSY)
    assert main(["compare", file, *POLICIES]) == 2
    assert capsys.readouterr() == ("", "podium: " + said.format(shlex.join(POLICIES)))


@pytest.mark.parametrize(("sign", "first"), [(",", 1001), (".", 1.001)])
def test_the_decimal_sign_settles_what_a_point_means(sign: str, first: float) -> None:
    assert podium.read_log(MESSY / "open_thousands.csv", decimal=sign).state_columns["fee"][0] == first


def in_semicolons(tmp_path: Path, *cells: str) -> Path:
    path = tmp_path / "log.csv"
    path.write_text("spend;action;reward\n" + "".join(f"{x};{a};1\n" for x in cells for a in ("a", "b")))
    return path


def test_a_column_has_one_notation(tmp_path: Path) -> None:
    log = podium.read_log(in_semicolons(tmp_path, "1,5", "1.234"))
    assert log.state_columns["spend"].tolist() == [1.5, 1.5, 1234, 1234]
    assert log.notes == ("Column 'spend': read decimal commas, such as '1.234' as 1234",)


def test_numbers_that_no_notation_fits_are_refused(tmp_path: Path) -> None:
    with pytest.raises(podium.PodiumError, match="column 'spend' mixes"):
        podium.read_log(in_semicolons(tmp_path, "1.234,5", "2.5"))


def test_a_log_of_one_action_asks_for_another_policy(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log.csv"
    path.write_text("age,action,reward\n1,call,1\n2,call,0\n3,call,1\n")
    assert main(["check", str(path)]) == 0
    lead, _, command = capsys.readouterr().out.rpartition("\n\n  ")
    assert lead.endswith("Replace NAME=SPEC in this command to compare:")
    assert command == f"podium compare {path} --policy 'always call=constant:call' --policy NAME=SPEC\n"


def test_a_file_without_an_action_asks_for_its_column(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "log.csv"
    path.write_text("x,reward\n" + "".join(f"{i / 7},{i % 2}\n" for i in range(9)))
    assert main(["compare", str(path)]) == 2
    assert capsys.readouterr().err == (
        "podium: the log has no column 'action' for the action\n\n"
        f"Hint: the columns are x, reward. Replace COLUMN, and go on with:\n\n  podium compare {path} --action COLUMN\n"
    )


def test_codes_with_leading_zeros_stay_texts() -> None:
    assert podium.read_log(MESSY / "zip_codes.csv").state_columns["zip"][:3].tolist() == ["01000", "20001", "01002"]


def test_a_last_row_that_only_looks_like_totals_stays(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("plan,region,action,reward\ntotal,,a,1\nbasic,n,b,0\nbasic,s,a,1\ntotal,,b,0\n")
    assert len(podium.read_log(path)) == 4


WEB_PAGE = b"<html><body><table><tr><td>action</td></tr></table></body></html>"
SAVE = "\n\nHint: open it in a spreadsheet, and save it as .xlsx or CSV."


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("log.csv", WEB_PAGE, "log.csv is a web page (HTML) inside, not a table" + SAVE),
        ("log.xls", WEB_PAGE, "log.xls is a web page (HTML) inside, not a table" + SAVE),
        ("log.xlsx", WEB_PAGE, "log.xlsx is a web page (HTML) inside, not a table" + SAVE),
        ("log.xls", b"\xd0\xcf\x11\xe0", "log.xls is of a format of Excel that podium does not read" + SAVE),
    ],
)
def test_what_is_no_table_is_named(file: str, content: bytes, said: str, tmp_path: Path) -> None:
    (tmp_path / file).write_bytes(content)
    with pytest.raises(podium.PodiumError) as error:
        podium.read_log(tmp_path / file)
    assert str(error.value) == said


# --- DuckDB reads what memory reads, or refuses ----------------------------------------------------------------------


@pytest.mark.parametrize("head", [8192, 3])
def test_duckdb_asks_what_a_point_means_as_memory_does(
    head: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("podium.data.unconverted.HEAD", head)  # 3: the first rows are whole numbers alone
    path = in_semicolons(tmp_path, "900", "901", "1.234")
    with pytest.raises(podium.PodiumError) as error:
        podium.scan_log(path, engine="duckdb")
    assert str(error.value) == (
        "the engine duckdb reads values as they are, and column 'spend' holds numbers such as '1.234', and the point "
        "may separate thousands or decimals\n\n"
        "Hint: use engine='memory' (--engine memory): write --decimal , if '1.234' is 1234, or --decimal . if it is "
        "1.234."
    )


def test_duckdb_reads_decimal_points_in_a_file_with_semicolons(tmp_path: Path) -> None:
    log = podium.scan_log(in_semicolons(tmp_path, "900", "1.25"), engine="duckdb")
    assert (len(log), log.notes) == (4, ())


# --- names and rows below the header ---------------------------------------------------------------------------------


def test_columns_with_one_name_are_asked_about_where_they_play_a_role(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(MESSY)
    assert main(["compare", "reward_twice.csv", *POLICIES]) == 2
    assert capsys.readouterr().err == (
        "podium: two columns are called 'reward' and differ; the reward may be 'reward (1)' or 'reward (2)'\n\n"
        "Hint: This command goes on:\n\n"
        f"  podium compare reward_twice.csv {shlex.join(POLICIES)} --reward 'reward (1)'\n"
    )
    second = podium.read_log("reward_twice.csv", reward="reward (2)")
    assert second.rewards.tolist() == [1 - r for r in PLAIN["reward"]]
    assert list(second.state_columns) == list(STATES)


def test_a_last_column_without_a_name_gets_one(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("x,action,reward,\n1,a,0,7\n2,b,1,8\n1,a,0,7\n")
    log = podium.read_log(path)
    assert list(log.state_columns) == ["x"]
    assert log.notes == (
        "Column 4 has no name; it is called 'column 4'",
        "Not taken as state: column 4 (no name in the file); --state COL takes a column as state",
    )
    assert list(podium.read_log(path, state=["x", "column 4"]).state_columns) == ["x", "column 4"]


def test_lines_are_counted_with_the_rows_of_labels(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text((MESSY / "import_ids.csv").read_text() + "30,north,10.5,call,\n")
    with pytest.raises(podium.PodiumError, match=r"column 'reward' must be a number; row 61 \(line 64\) holds nothing"):
        podium.read_log(path)


@pytest.mark.parametrize(
    "first",
    [
        "unknown,not yet asked,call,1",  # a value that fits stands in the row
        "not known at all,north,not called yet,",  # one column of numbers alone holds a text
        "31,a long region name,call,0",
    ],
)
def test_rows_of_data_below_the_header_stay(first: str, tmp_path: Path) -> None:
    rows = "".join(f"{20 + i},north,{'call' if i % 2 else 'email'},{i % 2}\n" for i in range(6))
    path = tmp_path / "log.csv"
    path.write_text(f"age,region,action,reward\n{first}\n{rows}")
    log = podium.read_log(path, text=["age"], drop_missing=True)
    dropped = [note.fields["dropped"] for note in log.notes if note.code == "dropped rows"]
    assert len(log) + sum(dropped) == 7
    assert "further headers" not in [note.code for note in log.notes]


def test_actions_that_look_the_same_are_refused_by_duckdb() -> None:
    with pytest.raises(podium.PodiumError) as error:
        podium.scan_log(MESSY / "invisible_labels.csv", engine="duckdb")
    assert str(error.value) == (
        "the engine duckdb reads values as they are, and in memory podium would convert some. Column 'action': labels "
        "that look the same were merged into 'call', 'email', by removing spaces and characters that do not show (45 "
        "rows changed)\n\nHint: use engine='memory' (--engine memory), write the values in plain form, or read the "
        "column as text (--text action)."
    )
    assert podium.read_log(MESSY / "invisible_labels.csv", text=["action"]).n_actions == 8
    names = podium.scan_log(MESSY / "invisible_names.csv", engine="duckdb")
    assert list(names.state_columns) == list(STATES)


def test_actions_that_differ_in_case_stay_apart_with_a_warning(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "log.csv"
    path.write_text(
        "x,action,reward\n" + "".join(f"{i % 3},{('call', 'Call', 'mail')[i % 3]},{i % 2}\n" for i in range(30))
    )
    assert main(["compare", str(path), "--policy", "a=constant:call", "--policy", "b=constant:mail", "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["log"]["actions"] == 3
    assert (
        "the logged actions 'Call' and 'call' differ only by case or spaces; if they are the same, give them one name."
        in answer["warnings"]
    )


@pytest.mark.parametrize(
    ("members", "said"),
    [
        (("a.csv", "b.csv"), "log.zip holds 2 files: 'a.csv', 'b.csv'\n\nHint: unpack it, and name one file."),
        ((), "log.zip is empty\n\nHint: unpack it, and name one file."),
        (
            ("log.docx",),
            "log.zip holds 'log.docx', and podium reads only CSV and JSON inside a zip file\n\n"
            "Hint: unpack it, and name the file.",
        ),
    ],
)
def test_a_zip_file_holds_one_table(members: tuple[str, ...], said: str, tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "log.zip", "w") as archive:
        for name in members:
            archive.writestr(name, "x,action,reward\n1,a,0\n")
    with pytest.raises(podium.PodiumError) as error:
        podium.read_log(tmp_path / "log.zip")
    assert str(error.value) == said


def test_a_zip_file_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    (tmp_path / "log.zip").write_bytes((MESSY / "mac.zip").read_bytes()[:200])
    with pytest.raises(podium.PodiumError) as error:
        podium.read_log(tmp_path / "log.zip")
    assert str(error.value) == "log.zip is not a whole zip file: File is not a zip file\n\nHint: export it again."


# --- what may not mean what it seems to ------------------------------------------------------------------------------


def test_the_command_for_a_harm_takes_less_for_better(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(MESSY)
    for asked in (["check", "churned.csv"], ["check", "churned.csv", "--reward", "churned"]):
        assert main(asked) == 0
        command = capsys.readouterr().out.rpartition("\n\n  ")[2].strip()
        assert command.endswith(" --lower-is-better")
        assert main(shlex.split(command)[1:]) == 0
        capsys.readouterr()


def test_codes_are_read_by_the_option_that_is_named() -> None:
    log = podium.read_log(MESSY / "codes.csv", reward="converted", success="1")
    assert log.rewards.tolist() == PLAIN["reward"].tolist()
    assert log.notes == ("Column 'converted': 1 counts as 1, 2 as 0",)


def test_a_column_that_was_recorded_after_the_action_is_state_where_it_is_named() -> None:
    log = podium.read_log(MESSY / "recorded_after.csv", state=["age", "Stage"])
    assert list(log.state_columns) == ["age", "Stage"]
    assert log.notes == ()
    scanned = podium.scan_log(MESSY / "recorded_after.csv", engine="duckdb")
    assert list(scanned.state_columns) == [*STATES, "sales region"]


def test_outcomes_alone_are_no_state(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("status,action,reward\n" + "".join(f"{'ab'[i % 2]},{'xy'[i % 3 > 1]},{i % 2}\n" for i in range(12)))
    log = podium.read_log(path)
    assert list(log.state_columns) == ["all rows"]
    with pytest.raises(podium.PodiumError) as error:
        podium.scan_log(path, engine="duckdb")
    assert str(error.value) == (
        "no column is left for the state. Not taken as state: 'status', which may have been recorded after the action; "
        "--state COL takes a column as state\n\nHint: name the state (--state COL), or use engine='memory' (--engine "
        "memory), where all rows count as one."
    )


def test_ids_and_times_of_outcomes_are_no_state_beside_outcomes(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    rows = "".join(f"u{i},{'xy'[i % 3 > 1]},{i % 2},{7 * (i % 2)},2024-01-{1 + i:02}\n" for i in range(24))
    path.write_text(f"user_id,action,reward,revenue,converted_at\n{rows}")
    log = podium.read_log(path)
    assert list(log.state_columns) == ["all rows"]
    assert log.notes == (
        "Not taken as state: 'revenue', 'converted_at', which may have been recorded after the action; --state COL "
        "takes a column as state",
        "Not taken as state: user_id (ids); --state COL takes a column as state",
        "No column is state, so all rows count as one state",
    )


def test_time_zones_in_some_rows_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "log.csv"
    path.write_text("x,time,action,reward\n1,2024-01-05 10:00:00,a,0\n2,2024-01-06 10:00:00 UTC,b,1\n")
    with pytest.raises(podium.PodiumError) as error:
        podium.read_log(path)
    assert str(error.value) == (
        "column 'time' must be a number or an ISO 8601 date; row 2 (line 3) holds '2024-01-06 10:00:00 UTC' (1 row)\n\n"
        "Hint: give every row a number or an ISO 8601 date; without times, the row order is the time order."
    )
