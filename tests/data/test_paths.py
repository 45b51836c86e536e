"""Which files a path names, and whether they are still the same."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from podium.data.errors import PodiumError
from podium.data.paths import Found, Watch, find_files

KINDS = ((".csv",), (".json",))


@pytest.fixture(autouse=True)
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def make(*names: str) -> None:
    for name in names:
        Path(name).parent.mkdir(parents=True, exist_ok=True)
        Path(name).write_text(name)


def found(path: str) -> list[str]:
    return [str(file) for file in find_files(path, KINDS).files]


def message(call: Callable[[], Any]) -> str:
    with pytest.raises(PodiumError) as caught:
        call()
    return caught.value.message


@pytest.mark.parametrize("name", ["a[1].csv", "a?.csv", "*.csv", "a**.csv", "[!b]1.csv", "-a.csv", "~.csv", "a\nb.csv"])
def test_a_name_that_exists_is_that_file(name: str) -> None:
    make(name, "a1.csv", "ab.csv")
    assert found(name) == [name]


def test_a_folder_that_exists_is_that_folder() -> None:
    make("runs[1]/a.csv", "runs[1]/b[2].csv", "runs1/c.csv")
    assert found("runs[1]") == ["runs[1]/a.csv", "runs[1]/b[2].csv"]
    assert found("runs[1]/*.csv") == ["runs[1]/a.csv", "runs[1]/b[2].csv"]
    assert found("runs[0-9]/*.csv") == ["runs1/c.csv"]


def test_only_a_name_that_does_not_exist_is_a_pattern() -> None:
    make("a1.csv", "a2.csv", "sub/deep/a3.csv")
    assert found("a[12].csv") == ["a1.csv", "a2.csv"]
    assert found("**/a?.csv") == ["a1.csv", "a2.csv", "sub/deep/a3.csv"]
    assert message(lambda: found("b*.csv")) == "no file matches 'b*.csv'"
    assert message(lambda: found("b.csv")) == "there is no file 'b.csv'"


@pytest.mark.parametrize("name", ["a\0b.csv", "*\0.csv", "x" * 5000 + ".csv", ""])
def test_names_that_no_file_has(name: str) -> None:
    assert message(lambda: found(name)).startswith(("there is no file", "the folder '' holds no"))


@pytest.mark.parametrize("name", ["https://host/a.csv", "s3://bucket/*.parquet", "hf://x/y", "file:///a.csv"])
@pytest.mark.parametrize("kind", [str, Path])
def test_an_address_is_not_a_file(name: str, kind: Callable[[str], Any]) -> None:
    assert message(lambda: find_files(kind(name), KINDS)).endswith(
        "is an address, and podium reads only files of this machine"
    )


def test_a_folder_is_listed_as_spark_lists_it() -> None:
    make("log/a.csv", "log/.b.csv", "log/_c.csv", "log/_temporary/d.csv", "log/_x=1/e.csv", "log/f.txt")
    Path("log/g.csv").mkdir()
    assert found("log") == ["log/_x=1/e.csv", "log/a.csv"]


def test_links_to_folders_are_followed_unless_they_lead_back() -> None:
    make("real/a.csv", "log/b.csv")
    Path("log/more").symlink_to(Path("real").absolute())
    assert found("log") == ["log/b.csv", "log/more/a.csv"]
    Path("real/again").symlink_to(Path("log").absolute())
    assert message(lambda: found("log")).endswith("is a link to a folder that holds it")


def test_a_link_that_leads_to_itself() -> None:
    Path("a.csv").symlink_to("a.csv")
    assert message(lambda: found("a.csv")) == "there is no file 'a.csv'"


def test_a_pipe_cannot_be_read_twice() -> None:
    os.mkfifo("a.csv")
    assert message(lambda: found("a.csv")).startswith("a.csv is not a regular file")
    Path("log").mkdir()
    os.mkfifo("log/b.csv")
    assert message(lambda: found("log")).startswith("b.csv is not a regular file")


def test_folders_name_columns_below_the_folder_that_was_named() -> None:
    make("x=1/log/country=de/a.csv", "x=1/log/country=f%2Fr/a.csv")
    values = {"country": ["de", "f/r"]}
    assert find_files("x=1/log", KINDS).folder_values() == values
    assert find_files("x=1/log/*/a.csv", KINDS).folder_values() == values
    assert find_files("x=1/log/country=*/*.csv", KINDS).folder_values() == values
    assert find_files("x=1/log/country=de", KINDS).folder_values() == {}
    assert find_files("x=1/log/country=de/a.csv", KINDS).folder_values() == {}


def test_a_missing_value_in_the_name_of_a_folder() -> None:
    files = (Path("b/k=__HIVE_DEFAULT_PARTITION__/a.csv"),)
    assert Found(files, Path("b")).folder_values() == {"k": [None]}


def test_a_column_may_be_named_by_one_folder() -> None:
    for folder in ("k=1/k=2", "k=1/K=2"):
        files = (Path("b", folder, "a.csv"),)
        assert message(Found(files, Path("b")).folder_values).startswith("two folders of one file give the column ")
    assert Found((Path("b/=x/a.csv"),), Path("b")).folder_values() == {}


def test_folders_must_name_the_same_columns() -> None:
    make("log/country=de/a.csv", "log/b.csv")
    assert message(lambda: find_files("log", KINDS).folder_values()) == (
        "'country=de/a.csv' and 'b.csv' lie in folders that give different columns"
    )


# --- whether files are still the same ------------------------------------------------------------------------------


def test_a_file_that_stays_is_the_same() -> None:
    make("a.csv")
    watch = Watch([Path("a.csv")])
    watch.check()
    Path("a.csv").chmod(0o600)
    watch.check()


def replaced() -> None:
    make("b.csv")
    os.utime("b.csv", ns=(0, Path("a.csv").stat().st_mtime_ns))
    Path("b.csv").replace("a.csv")


CHANGES = {
    "grown": lambda: Path("a.csv").write_text("a.csv more"),
    "truncated": lambda: os.truncate("a.csv", 1),
    "touched": lambda: os.utime("a.csv", ns=(0, 0)),
    "replaced by a file of the same size and time": replaced,
}


@pytest.mark.parametrize("what", CHANGES)
def test_a_file_that_changes_is_noticed(what: str) -> None:
    make("a.csv")
    watch = Watch([Path("a.csv")])
    CHANGES[what]()
    assert message(watch.check) == "a.csv changed while it was read"


def test_a_file_that_disappears_is_noticed() -> None:
    make("a.csv")
    watch = Watch([Path("a.csv")])
    Path("a.csv").unlink()
    assert message(watch.check) == "a.csv disappeared while it was read"
