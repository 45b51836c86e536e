"""Make the messy files of this folder: exports of one small log, each with what exports of that kind have.

python tests/messy/build.py writes them again; they come out the same, apart from workbooks, whose archives hold dates.
"""

# ruff: noqa: E501
from __future__ import annotations

import csv
import gzip
import io
import json
import zipfile
from collections.abc import Callable, Sequence
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np

FOLDER = Path(__file__).parent
ROWS = 60
Rows = list[list[Any]]


def base() -> dict[str, list[Any]]:
    """One log of 60 rows: who was called or mailed, and who answered."""
    rng = np.random.default_rng(7)
    age = rng.integers(20, 80, ROWS)
    action = rng.choice(["call", "email"], ROWS)
    reward = (rng.random(ROWS) < np.where(action == "call", 0.3 + age / 200, 0.4)).astype(int)
    return {
        "age": age.tolist(),
        "region": rng.choice(["north", "south", "west"], ROWS).tolist(),
        "spend": [round(float(x), 2) for x in rng.gamma(2, 900, ROWS)],
        "action": action.tolist(),
        "reward": reward.tolist(),
    }


LOG = base()
NAMES = list(LOG)


def rows(header: Sequence[str] = NAMES, **changed: Sequence[Any]) -> Rows:
    """The log as rows below a header, with some columns written in another way or added."""
    columns = {**LOG, **changed}
    return [list(header), *(list(row) for row in zip(*columns.values(), strict=True))]


def text(table: Rows, separator: str = ",", end: str = "\n") -> str:
    out = io.StringIO()
    csv.writer(out, delimiter=separator, lineterminator=end).writerows(table)
    return out.getvalue()


def holes(column: str, words: Sequence[str]) -> list[Any]:
    """A column with these words in every seventh row."""
    cells: list[Any] = list(LOG[column])
    for i, n in enumerate(range(3, ROWS, 7)):
        cells[n] = words[i % len(words)]
    return cells


def days(form: str, step: int = 9) -> list[str]:
    return [(date(2023, 1, 2) + timedelta(days=step * i)).strftime(form) for i in range(ROWS)]


def german(numbers: Sequence[float]) -> list[str]:
    return [f"{x:,.2f}".replace(",", "_").replace(".", ",").replace("_", ".") for x in numbers]


def words(yes: str, no: str) -> list[str]:
    return [yes if r else no for r in LOG["reward"]]


def workbook(table: Rows, name: str, sheets: Sequence[tuple[str, Rows]] = (), hidden: str = "") -> None:
    import openpyxl

    book = openpyxl.Workbook()
    book.active.title = "Log"
    for title, content in (("Log", table), *sheets):
        sheet = book[title] if title in book.sheetnames else book.create_sheet(title)
        for row in content:
            sheet.append(row)
    if hidden:
        book[hidden].sheet_state = "hidden"
    book.save(FOLDER / name)


def ods(table: Rows, name: str) -> None:
    from odf.opendocument import OpenDocumentSpreadsheet
    from odf.table import Table, TableCell, TableRow
    from odf.text import P

    document = OpenDocumentSpreadsheet()
    sheet = Table(name="Log")
    for row in table:
        line = TableRow()
        for cell in row:
            number = isinstance(cell, int | float)
            made = TableCell(valuetype="float", value=cell) if number else TableCell(valuetype="string")
            made.addElement(P(text=str(cell)))
            line.addElement(made)
        sheet.addElement(line)
    document.spreadsheet.addElement(sheet)
    document.save(str(FOLDER / name))


def clinic(when: Sequence[Any]) -> Rows:
    """What a clinic exports: its own names, outcomes in words, days first, a missing outcome, ages that are missing."""
    answers, ages = words("Yes", "No"), list(LOG["age"])
    answers[11] = ages[7] = ""
    ages[20] = ages[41] = "n/a"
    patients = [f"P{1000 + i}" for i in range(ROWS)]
    header = ["Patient ID", "Visit Date", "Patient Age", "Spend", "Treatment Given", "Recovered"]
    columns = (patients, when, ages, LOG["spend"], LOG["action"], answers)
    return [header, *(list(row) for row in zip(*columns, strict=True))]


TITLED = [["Campaign report 2024"], [], *rows()]
ROLES = ["Age", "Region", "Spend", "Channel Used", "Answered"]
QUALTRICS = [
    [
        "What is your age?",
        "Region, please",
        "How much did you spend?",
        "How we reached you",
        "Did you answer (0 or 1)?",
    ],
    [
        '{"ImportId":"QID1"}',
        '{"ImportId":"QID2"}',
        '{"ImportId":"QID3"}',
        '{"ImportId":"action"}',
        '{"ImportId":"QID4"}',
    ],
]
POINTED = [f"{x:,}".replace(",", ".") for x in range(1001, 1001 + 3 * ROWS, 3)]  # 1.001 for 1001
TEXTS: dict[str, Callable[[], str]] = {
    "semicolons.csv": lambda: text(rows(), ";"),
    "tabs.txt": lambda: text(rows(), "\t"),
    "windows_lines.csv": lambda: text(rows(), end="\r\n"),
    "decimal_commas.csv": lambda: text(rows(spend=german(LOG["spend"])), ";"),
    "thousands.csv": lambda: text(rows(spend=[f"{x:,.2f}" for x in LOG["spend"]])),
    "dollars.csv": lambda: text(rows(spend=[f"${x:,.2f}" for x in LOG["spend"]])),
    "euros_after.csv": lambda: text(rows(spend=[f"{x} €" for x in german(LOG["spend"])]), ";"),
    "spaces_in_thousands.csv": lambda: text(rows(spend=[f"{x:,.2f}".replace(",", "\u202f") for x in LOG["spend"]])),
    "accounting.csv": lambda: text(rows(spend=[f"({x:,.2f})" if i % 9 == 0 else f"{x:,.2f}" for i, x in enumerate(LOG["spend"])])),
    "percent_propensity.csv": lambda: text(rows([*NAMES, "propensity"], propensity=["50%"] * ROWS)),
    "percent_reward.csv": lambda: text(rows(reward=[f"{100 * r}%" for r in LOG["reward"]])),
    "yes_no.csv": lambda: text(rows(reward=words("Yes", "No"))),
    "true_false.csv": lambda: text(rows(reward=words("TRUE", "FALSE"))),
    "won_lost.csv": lambda: text(rows(reward=words("won", "lost"))),
    "ja_nein.csv": lambda: text(rows(reward=words("ja", "nein")), ";"),
    "empty_ages.csv": lambda: text(rows(age=holes("age", [""]))),
    "na_ages.csv": lambda: text(rows(age=holes("age", ["n/a", "NULL", "-"]))),
    "excel_errors.csv": lambda: text(rows(spend=holes("spend", ["#N/A", "#DIV/0!"]))),
    "empty_regions.csv": lambda: text(rows(region=holes("region", [""]))),
    "ids.csv": lambda: text(rows([*NAMES, "customer_id"], customer_id=[f"C{1000 + i}" for i in range(ROWS)])),
    "dates.csv": lambda: text(rows([*NAMES, "signup"], signup=days("%Y-%m-%d"))),
    "long_notes.csv": lambda: text(rows([*NAMES, "notes"], notes=[f"Customer {i} asked, among other things, whether the offer of last year still holds for them" for i in range(ROWS)])),
    "title_above.csv": lambda: "Campaign report 2024\n\n" + text(rows()),
    "title_and_semicolons.csv": lambda: "Export of 3 March, all regions\n" + text(rows(), ";"),
    "title_with_commas.csv": lambda: "Campaign report 2024,,,,\n" + text(rows()),
    "sep_line.csv": lambda: "sep=;\n" + text(rows(), ";"),
    "pandas_index.csv": lambda: text([["", *NAMES], *([i, *row] for i, row in enumerate(rows()[1:]))]),
    "unnamed_0.csv": lambda: text([["Unnamed: 0", *NAMES], *([i, *row] for i, row in enumerate(rows()[1:]))]),
    "trailing_separator.csv": lambda: text([[*row, ""] for row in rows()]),
    "blank_rows_at_end.csv": lambda: text(rows()) + ",,,,\n,,,,\n",
    "day_first_dates.csv": lambda: text(rows([*NAMES, "when"], when=days("%d/%m/%Y"))),
    "month_first_dates.csv": lambda: text(rows([*NAMES, "when"], when=days("%m/%d/%Y"))),
    "german_dates.csv": lambda: text(rows([*NAMES, "when"], when=days("%d.%m.%Y")), ";"),
    "named_months.csv": lambda: text(rows([*NAMES, "when"], when=days("%d-%b-%y"))),
    "clock_times.csv": lambda: text(rows([*NAMES, "when"], when=days("%d/%m/%Y 02:30 PM"))),
    "spaces_in_names.csv": lambda: text(rows(["Age ", " Region", "Spend (EUR)", "action", "reward"])),
    "pipes.csv": lambda: text(rows(), "|"),
    "spacer_column.csv": lambda: text([[*row[:3], "", *row[3:]] for row in rows()]),
    "total_row.csv": lambda: text([*rows(), ["Total", "", sum(LOG["spend"]), "", sum(LOG["reward"])]]),
    "zip_codes.csv": lambda: text(rows([*NAMES, "zip"], zip=[f"{(1000, 20000)[i % 2] + i % 7:05}" for i in range(ROWS)])),
    "excel_days.csv": lambda: text(rows([*NAMES, "Signup Date"], signup=[44930 + 9 * i for i in range(ROWS)])),
    "decimals_of_outcomes.csv": lambda: text(rows(reward=[f"{r}.0" for r in LOG["reward"]])),
    "sap_minus.csv": lambda: text(rows(spend=[f"{x}-" if i % 9 == 0 else x for i, x in enumerate(german(LOG["spend"]))]), ";"),
    "thousand_points.csv": lambda: text(rows([*NAMES, "fee"], spend=german(LOG["spend"]), fee=POINTED), ";"),
    "abbreviated.csv": lambda: text(rows([*NAMES, "income"], income=[f"${(20 + i) / 10}K" for i in range(ROWS)])),
    "units.csv": lambda: text(rows([*NAMES, "weight"], weight=[f"{50 + 7 * i % 60} kg" for i in range(ROWS)])),
    "lengths.csv": lambda: text(rows([*NAMES, "handled"], handled=[f"00:{i:02}:30" for i in range(ROWS)])),
    "indian.csv": lambda: text(rows([*NAMES, "income"], income=["12,34,567" if i % 2 else "₹4,56,789.50" for i in range(ROWS)])),
    "both_signs.csv": lambda: text(rows(spend=[f"{x:.2f}".replace(".", ",") if i % 2 else f"{x:.2f}" for i, x in enumerate(LOG["spend"])]), ";"),
    "spellings_of_yes.csv": lambda: text(rows(reward=[("Yes", "yes", "Y")[i % 3] if r else ("No", "NO ")[i % 2] for i, r in enumerate(LOG["reward"])])),
    "dutch.csv": lambda: text(rows(reward=words("Ja", "Nee")), ";"),
    "wahr_falsch.csv": lambda: text(rows(reward=words("WAHR", "FALSCH")), ";"),
    "check_marks.csv": lambda: text(rows(reward=words("✓", "✗"))),
    "out_of_five.csv": lambda: text(rows([*NAMES, "stars"], stars=[f"{1 + i % 5}/5" for i in range(ROWS)])),
    "mysql.tsv": lambda: text(rows(age=holes("age", [r"\N"])), "\t"),
    "epoch.csv": lambda: text(rows([*NAMES, "event_ms"], event_ms=[1704100000000 + 60000 * i for i in range(ROWS)])),
    "mail_addresses.csv": lambda: text(rows([*NAMES, "contact"], contact=[f"p{i}@example.org" for i in range(ROWS)])),
    "capital_roles.csv": lambda: text(rows(["Age", "Region", "Spend", "Action", "Reward"])),
    "capital_propensity.csv": lambda: text(rows([*NAMES, "Propensity"], propensity=[0.5] * ROWS)),
    "comment_lines.csv": lambda: "# Property: Shop\n# Account: Acme, Inc.\n# From: 20240101\n\n" + text(rows()),
    "note_below.csv": lambda: text(rows()) + "\nGenerated on 2024-09-01\n",
    "account_total.csv": lambda: text([*rows(), ["Total: Account", "", sum(LOG["spend"]), "", sum(LOG["reward"])]]),
    "ruler.txt": lambda: text(rows(), "|").replace("\n", "\n---+------+-----+------+------\n", 1) + "(60 rows)\n",
    "list.json": lambda: json.dumps([dict(zip(NAMES, row, strict=True)) for row in rows()[1:]], indent=1),
    "wrapped.json": lambda: json.dumps({"rows": ROWS, "data": [dict(zip(NAMES, row, strict=True)) for row in rows()[1:]]}),
    "pandas.json": lambda: json.dumps({name: dict(enumerate(cells)) for name, cells in LOG.items()}),
    "invisible_names.csv": lambda: text(rows(["\ufeffage\u200b", "region ", " spend\u00a0", "\u200baction", "reward"])),
    "invisible_labels.csv": lambda: text(rows(action=[a + ("\u00a0", " ", "\u200b", "")[i % 4] for i, a in enumerate(LOG["action"])])),
    "slashes_and_months.csv": lambda: text(rows([*NAMES, "when"], when=days("%d/%b/%y"))),
    "months_in_words.csv": lambda: text(rows([*NAMES, "when"], when=days("%b %d, %Y"))),
    "utc.csv": lambda: text(rows([*NAMES, "when"], when=days("%Y-%m-%d 10:00:00 UTC"))),
    "web_log.csv": lambda: text(rows([*NAMES, "when"], when=days("%d/%b/%Y:10:00:00 +0200"))),
    "recorded_after.csv": lambda: text(rows([*NAMES, "Stage", "revenue", "IsWon", "sales region"], stage=words("closed", "open"), revenue=[7 * r for r in LOG["reward"]], won=LOG["reward"], sales_region=LOG["region"])),
    "churned.csv": lambda: text(rows(["age", "region", "spend", "action", "churned"], reward=words("Yes", "No"))),
    "sentinel.csv": lambda: text(rows([*NAMES, "visits"], visits=[-999 if i % 9 == 0 else i % 7 for i in range(ROWS)])),
    "codes.csv": lambda: text(rows(["age", "region", "spend", "action", "converted"], reward=[1 if r else 2 for r in LOG["reward"]])),
    "empty_header.csv": lambda: text([[*row[:3], "" if i == 0 else i % 7, *row[3:]] for i, row in enumerate(rows())]),
    "equal_columns.csv": lambda: text([[*row[:3], row[0], *row[3:]] for row in rows()]),
    "same_names.csv": lambda: text([[*row[:3], "age" if i == 0 else i % 7, *row[3:]] for i, row in enumerate(rows())]),
    "import_ids.csv": lambda: text([NAMES, *QUALTRICS, *rows()[1:]]),
    "response_row.csv": lambda: text([NAMES, ["Response", "", "Response", "Response", "Response"], *rows(reward=words("Yes", "No"))[1:]]),
    "header_again.csv": lambda: text([NAMES, *rows()]),
    # what podium asks about once
    "reward_twice.csv": lambda: text([[*row, "reward" if i == 0 else 1 - int(row[-1])] for i, row in enumerate(rows())]),
    "open_thousands.csv": lambda: text(rows([*NAMES, "fee"], spend=[round(x) for x in LOG["spend"]], fee=POINTED), ";"),
    "marks_alone.csv": lambda: text(rows(reward=words("X", ""))),
    "three_outcomes.csv": lambda: text(rows(reward=["Offered" if i % 11 == 0 else w for i, w in enumerate(words("Good", "Bad"))])),
    "converted_at.csv": lambda: text(rows(["age", "region", "spend", "group", "converted", "converted_at"], at=[d if r else "" for d, r in zip(days("%Y-%m-%d"), LOG["reward"], strict=True)])),
    "own_names.csv": lambda: text(rows(ROLES, reward=words("Yes", "No"))),
    "missing_rewards.csv": lambda: text(rows(reward=holes("reward", ["", "n/a"]))),
    "missing_actions.csv": lambda: text(rows(action=holes("action", ["-"]))),
    "unknown_success.csv": lambda: text(rows(reward=words("renewed", "expired"))),
    "ambiguous_dates.csv": lambda: text(rows([*NAMES, "when"], when=[f"{1 + i % 12:02}/{1 + (5 * i) % 12:02}/2023" for i in range(ROWS)])),
    "mixed_ages.csv": lambda: text(rows(age=holes("age", ["over 80"]))),
    "typo_in_header.csv": lambda: text(rows(["age", "region", "spend", "acton", "reward"])),
    "clinic.csv": lambda: text(clinic(days("%d/%m/%Y"))),
}  # fmt: skip


def main() -> None:
    for name, make in TEXTS.items():
        (FOLDER / name).write_text(make(), encoding="utf-8", newline="")
    plain = text(rows()).encode()
    accents = text(rows(region=[{"north": "Zürich", "south": "Genève", "west": "Bern"}[r] for r in LOG["region"]]))
    (FOLDER / "latin_1.csv").write_bytes(accents.encode("latin-1"))
    (FOLDER / "utf_16.csv").write_bytes(accents.replace(",", "\t").encode("utf-16"))
    (FOLDER / "utf_16_big_endian.csv").write_bytes(b"\xfe\xff" + accents.encode("utf-16-be"))
    (FOLDER / "utf_16_without_mark.csv").write_bytes(accents.encode("utf-16-le"))
    (FOLDER / "utf_8_mark.csv").write_bytes(b"\xef\xbb\xbf" + plain)
    (FOLDER / "packed.csv.gz").write_bytes(gzip.compress(plain, mtime=0))
    lines = "".join(json.dumps(dict(zip(NAMES, row, strict=True))) + "\n" for row in rows()[1:])
    (FOLDER / "packed.jsonl.gz").write_bytes(gzip.compress(lines.encode(), mtime=0))
    import pyarrow as pa

    with pa.output_stream(str(FOLDER / "packed.csv.zst"), compression="zstd") as file:
        file.write(plain)
    (FOLDER / "zstd_called.csv").write_bytes((FOLDER / "packed.csv.zst").read_bytes())
    (FOLDER / "gzip_called.csv").write_bytes(gzip.compress(plain, mtime=0))
    with zipfile.ZipFile(FOLDER / "mac.zip", "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in (("export/log.csv", plain), ("__MACOSX/export/._log.csv", b"\0\1")):
            archive.writestr(zipfile.ZipInfo(name), content)
    from pyarrow import parquet

    parquet.write_table(pa.table(LOG), FOLDER / "parquet_called.csv")
    workbook(rows(), "plain.xlsx")
    (FOLDER / "workbook_called.csv").write_bytes((FOLDER / "plain.xlsx").read_bytes())
    workbook(rows(reward=[bool(r) for r in LOG["reward"]]), "truth_values.xlsx")
    workbook(TITLED, "titled.xlsx")
    workbook([*rows(), [], ["Source: CRM, exported by Ann"]], "note_below.xlsx")
    workbook([["x", "y"], [1, 2], [3, 4]], "hidden_sheet.xlsx", [("Data", rows())], hidden="Log")
    workbook([["Read me"], ["The log is in the other sheet"]], "two_sheets.xlsx", [("Data", rows())])
    ods(rows(), "plain.ods")
    workbook(clinic([date(2023, 1, 2) + timedelta(days=9 * i) for i in range(ROWS)]), "clinic.xlsx")


if __name__ == "__main__":
    main()
