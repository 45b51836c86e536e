"""Files that podium writes: whole or not at all, never over an input, over a file of others only when asked to."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest

import podium
from podium.adapters import vowpal
from podium.data.errors import PodiumError
from podium.data.files import GENERATOR, MARK, check_output, claim_folder, note_input, write_bytes, write_output
from podium.worlds.simulator import Programme

POSIX = pytest.mark.platforms("linux", "darwin")
PAGE = f'<!doctype html>\n<html lang="en"><head><meta charset="utf-8"><meta name="generator" content="{GENERATOR}">'
FOREIGN = "exists, and podium did not write it\n\nHint: .*--overwrite .*overwrite=True"


@pytest.fixture
def log(tmp_path: Path) -> Path:
    path = tmp_path / "log.csv"
    Programme().draw(60, 3).write_csv(path)
    return path


def test_a_file_of_others_is_replaced_only_when_asked_for(tmp_path: Path):
    path = tmp_path / "notes.html"
    path.write_text("<!doctype html>\nmine")
    for write in (check_output, lambda path: write_output(path, PAGE)):
        with pytest.raises(PodiumError, match=FOREIGN):
            write(path)
    assert path.read_text() == "<!doctype html>\nmine"
    assert os.listdir(tmp_path) == ["notes.html"]
    write_output(check_output(path, overwrite=True), PAGE, overwrite=True)
    write_output(check_output(path), PAGE + "more")  # now it is podium's own
    assert path.read_text() == PAGE + "more"


def test_an_empty_or_unchanged_file_loses_nothing(tmp_path: Path):
    path = tmp_path / "log.csv"
    path.touch()
    write_output(check_output(path), "a,b\n")
    write_output(path, "a,b\n")
    with pytest.raises(PodiumError, match=FOREIGN):
        write_output(path, "a,c\n")
    (tmp_path / "sly.csv").write_text(f'label\n"{PAGE}"\n')  # a log that mentions a page of podium is not one
    with pytest.raises(PodiumError, match=FOREIGN):
        check_output(tmp_path / "sly.csv")


@POSIX
@pytest.mark.parametrize("name", ["log.csv", "x/../log.csv", "link.csv", "linked/log.csv", "hard.csv", "chain.csv"])
@pytest.mark.parametrize("overwrite", [False, True])
def test_an_input_is_never_written_over(name: str, overwrite: bool, log: Path):
    folder = log.parent
    (folder / "x").mkdir()
    (folder / "link.csv").symlink_to("log.csv")
    (folder / "chain.csv").symlink_to("x/../link.csv")
    (folder / "linked").symlink_to(folder)
    os.link(log, folder / "hard.csv")
    before = log.read_bytes()
    result = podium.compare(podium.read_log(log), estimator="LDE", verdicts="paired t")
    with pytest.raises(PodiumError, match=r"it is an input of this run, 'log.csv'\n\nHint: name another file."):
        result.report(f"{folder}/{name}", overwrite=overwrite)
    assert log.read_bytes() == before
    assert sorted(os.listdir(folder)) == ["chain.csv", "hard.csv", "link.csv", "linked", "log.csv", "x"]


def test_a_converted_log_does_not_replace_its_source(log: Path):
    path = log.with_suffix(".vw")
    vowpal.write_log(podium.read_log(log), path)
    other = podium.read_log(path)
    Programme().draw(61, 3).write_csv(log.parent / "longer.csv")
    longer = podium.read_log(log.parent / "longer.csv")
    with pytest.raises(PodiumError, match="it is an input"):
        vowpal.write_log(longer, path, overwrite=True)
    vowpal.write_log(podium.read_log(log), log.with_suffix(".dsjson"))
    with pytest.raises(PodiumError, match=FOREIGN):
        vowpal.write_log(other, log.with_suffix(".dsjson"))


def test_an_input_that_is_gone_is_forgotten(tmp_path: Path):
    """Its number in the file system may belong to another file by now."""
    for i in range(20):
        old = tmp_path / f"{i}.csv"
        old.write_text("a")
        note_input(old)
        old.unlink()
        assert write_output(tmp_path / "report.html", f"{PAGE}{i}").read_text() == f"{PAGE}{i}"


@POSIX
def test_links_are_followed(tmp_path: Path):
    there = tmp_path / "there"
    there.mkdir()
    link = tmp_path / "report.html"
    link.symlink_to("there/page.html")
    write_output(check_output(link), PAGE)  # the link leads nowhere yet
    write_output(check_output(link), PAGE + "again")
    assert link.is_symlink()
    assert (there / "page.html").read_text() == PAGE + "again"
    assert os.listdir(there) == ["page.html"]
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(PodiumError, match=r"cannot write '.*loop'"):
        check_output(tmp_path / "loop")


@POSIX
def test_the_mode_is_kept(tmp_path: Path):
    path = tmp_path / "report.html"
    mask = os.umask(0o027)
    try:
        write_output(path, PAGE)
    finally:
        os.umask(mask)
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    for mode in (0o600, 0o604, 0o755):
        path.chmod(mode)
        write_output(path, f"{PAGE}{mode}")
        assert stat.S_IMODE(path.stat().st_mode) == mode


@POSIX
def test_devices_and_pipes_are_written_to(tmp_path: Path, capfd: pytest.CaptureFixture[str]):
    write_output(check_output("/dev/null"), PAGE)
    assert stat.S_ISCHR(os.stat("/dev/null").st_mode)
    write_output(check_output("/dev/stdout"), PAGE)
    assert capfd.readouterr().out == PAGE
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    for _ in range(2):
        reader = threading.Thread(target=lambda: read.append(pipe.read_text()))
        reader.start()
        write_output(check_output(pipe), PAGE)
        reader.join()
    assert read == [PAGE, PAGE]
    assert stat.S_ISFIFO(pipe.stat().st_mode)


@POSIX
def test_an_open_descriptor_goes_on_where_it_is(tmp_path: Path):
    """A file behind /dev/fd/N is what a shell redirected: it gets the rest, and is not replaced."""
    path = tmp_path / "all.txt"
    with path.open("w") as file:
        file.write("first ")
        file.flush()
        write_output(check_output(f"/dev/fd/{file.fileno()}"), "second ")
        file.write("third")
    assert path.read_text() == "first second third"
    note_input(path)
    with path.open("a") as file, pytest.raises(PodiumError, match=r"it is an input of this run, 'all.txt'"):
        check_output(f"/dev/fd/{file.fileno()}", overwrite=True)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("folder", "it is a folder"),
        ("new/", "it is a folder"),
        ("", "it is a folder"),
        ("missing/report.html", "No such file or directory"),
        ("file/report.html", "Not a directory"),
        ("x" * 300, "File name too long"),
        ("a\0b", "embedded null"),
    ],
)
def test_what_cannot_be_written_is_told_before_the_work(name: str, reason: str, tmp_path: Path):
    (tmp_path / "folder").mkdir()
    (tmp_path / "file").touch()
    for overwrite in (False, True):
        with pytest.raises(PodiumError, match=f"cannot write '.*': {reason}"):
            check_output(f"{tmp_path}/{name}", overwrite=overwrite)
    assert sorted(os.listdir(tmp_path)) == ["file", "folder"]


def test_a_long_name_leaves_room_for_the_temporary_file(tmp_path: Path):
    write_bytes(tmp_path / ("ü" * 125 + ".html"), b"x")
    assert len(os.listdir(tmp_path)) == 1


def test_a_folder_is_claimed_once(tmp_path: Path):
    out = tmp_path / "out"
    claim_folder(out, ["tables", "index.html"])
    (out / "index.html").write_text("podium's")
    claim_folder(out, ["tables", "index.html"])
    (out / MARK).unlink()
    with pytest.raises(PodiumError, match=r"already contains 'index.html', which podium did not write"):
        claim_folder(out, ["tables", "index.html"])
    assert not (out / MARK).exists()
    claim_folder(out, ["tables", "index.html"], overwrite=True)
    claim_folder(out, ["tables", "index.html"])
    (tmp_path / "file").touch()
    with pytest.raises(PodiumError, match=r"cannot write '.*file'"):
        claim_folder(tmp_path / "file", ["tables"])
