"""Temporary folders vanish with their process: by themselves where it can, swept by the next where it could not."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from podium import PodiumError
from podium.data.scratch import LOCK, Scratch

HOLD = """
import sys, time
from podium.data.scratch import Scratch
held = Scratch("held", sys.argv[1])
(held.path / "rows").write_text("private")
print(held.path, flush=True)
time.sleep(60)
"""


def folders(where: Path) -> list[str]:
    return sorted(p.name for p in where.iterdir())


def holder(where: Path) -> "subprocess.Popen[str]":
    process = subprocess.Popen([sys.executable, "-c", HOLD, str(where)], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    assert Path(process.stdout.readline().strip(), "rows").is_file()
    return process


def test_a_folder_is_private_and_goes_when_it_is_closed(tmp_path: Path) -> None:
    with Scratch("a", tmp_path) as folder:
        (folder / "rows").write_text("private")
        assert folder.name.startswith("podium-a-")
        assert folder.stat().st_mode & 0o777 == 0o700
    assert folders(tmp_path) == []


def test_a_folder_goes_when_nobody_holds_it(tmp_path: Path) -> None:
    scratch = Scratch("a", tmp_path)
    assert len(folders(tmp_path)) == 1
    del scratch
    assert folders(tmp_path) == []


def test_a_folder_goes_when_its_process_ends(tmp_path: Path) -> None:
    code = HOLD.replace("time.sleep(60)", "raise SystemExit(3)")
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.DEVNULL).returncode == 3
    assert folders(tmp_path) == []


@pytest.mark.platforms("linux", "darwin")
def test_what_a_killed_process_left_is_swept_and_the_living_are_spared(tmp_path: Path) -> None:
    dead, living = holder(tmp_path), holder(tmp_path)
    dead.kill()
    dead.communicate()
    assert len(folders(tmp_path)) == 2
    with Scratch("next", tmp_path):
        assert len(folders(tmp_path)) == 2  # its own and the living one's
    assert len(folders(tmp_path)) == 1
    living.send_signal(signal.SIGKILL)
    living.communicate()
    Scratch("last", tmp_path).close()
    assert folders(tmp_path) == []


@pytest.mark.platforms("linux", "darwin")
def test_what_podium_did_not_make_is_not_swept(tmp_path: Path) -> None:
    (tmp_path / "podium-notes").mkdir()
    (tmp_path / "podium-notes" / "text").write_text("mine")
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / LOCK).touch()
    (tmp_path / "podium-link").symlink_to(tmp_path / "elsewhere")
    (tmp_path / "podium-file").touch()
    (tmp_path / "podium-pipe").mkdir()
    os.mkfifo(tmp_path / "podium-pipe" / LOCK)  # opening it would wait for a reader
    before = folders(tmp_path)
    Scratch("a", tmp_path).close()
    assert folders(tmp_path) == before
    assert (tmp_path / "podium-notes" / "text").read_text() == "mine"


@pytest.mark.platforms("linux", "darwin")
def test_a_forked_child_leaves_its_parents_folder(tmp_path: Path) -> None:
    scratch = Scratch("a", tmp_path)
    child = os.fork()
    if not child:
        scratch.close()
        os._exit(0)
    os.waitpid(child, 0)
    assert folders(tmp_path) == [scratch.path.name]


def test_a_missing_parent_is_named(tmp_path: Path) -> None:
    with pytest.raises(PodiumError, match=r"there is no folder '.*nowhere' for temporary files"):
        Scratch("a", tmp_path / "nowhere")


@pytest.mark.platforms("linux", "darwin")
def test_a_folder_whose_removal_is_cut_short_holds_no_file_without_its_lock(tmp_path: Path) -> None:
    """A process that is killed while it removes its folder: the lock goes last, so the next one sweeps the rest."""
    code = HOLD.replace(
        "time.sleep(60)",
        "import os; unlink = os.unlink\n"
        "for i in range(50): (held.path / f'{i}').write_text('private')\n"
        "os.unlink = lambda path, **rest: (unlink(path, **rest), os._exit(9) if 'lock' in str(path) else None)\n"
        "held.close()",
    )
    assert subprocess.run([sys.executable, "-c", code, str(tmp_path)], stdout=subprocess.DEVNULL).returncode == 9
    with Scratch("a", tmp_path):
        pass
    assert [p for p in tmp_path.rglob("*") if p.is_file()] == []
