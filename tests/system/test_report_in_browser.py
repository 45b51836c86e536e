"""The demo's report, opened in a real browser: it draws the ranking and needs nothing from the network."""

import json
import re
import shutil
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest
from PIL import Image

pytestmark = pytest.mark.system

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--disable-dev-shm-usage",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--hide-scrollbars",
    "--window-size=1000,1400",
)
REMOTE = re.compile(r"\s*([a-z][a-z0-9+.-]*:)?//", re.IGNORECASE)
REMOTE_STYLE = re.compile(r"""(?:url\(|@import)\s*["']?\s*(?:[a-z]+:)?//""", re.IGNORECASE)
ADDRESSES = frozenset({"src", "href", "xlink:href", "srcset", "action", "formaction", "poster", "data", "ping"})


class Page(HTMLParser):
    """The tables of a page, as rows of cell texts, and the addresses that its elements name."""

    def __init__(self, source: str) -> None:
        super().__init__()
        self.tables: list[list[list[str]]] = []
        self.addresses: list[str] = []
        self._in_cell = False
        self.feed(source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.addresses += [value for name, value in attrs if name in ADDRESSES and value]
        if tag == "table":
            self.tables.append([])
        elif tag == "tr" and self.tables:
            self.tables[-1].append([])
        elif tag in ("td", "th") and self.tables and self.tables[-1]:
            self.tables[-1][-1].append("")
            self._in_cell = True

    def handle_endtag(self, tag: str) -> None:
        if tag in ("td", "th"):
            self._in_cell = False

    def handle_data(self, data: str) -> None:
        if self._in_cell:
            self.tables[-1][-1][-1] += data


def run_podium(*arguments: str | Path) -> str:
    done = subprocess.run([sys.executable, "-m", "podium", *map(str, arguments)], capture_output=True, text=True)
    assert done.returncode == 0, f"podium {arguments[0]} ended with {done.returncode}:\n{done.stderr}"
    return done.stdout


def open_in_browser(page: Path, profile: Path, *actions: str) -> str:
    browser = next(filter(None, map(shutil.which, BROWSERS)), None)
    if browser is None:
        pytest.fail("Chromium is not installed; on Debian run: apt-get install chromium", pytrace=False)
    done = subprocess.run(
        [browser, *FLAGS, f"--user-data-dir={profile}", *actions, page.as_uri()],
        capture_output=True,
        text=True,
        timeout=120,
    )
    assert done.returncode == 0, f"the browser ended with {done.returncode}:\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `podium demo` wrote."""
    folder = tmp_path_factory.mktemp("demo")
    run_podium("demo", "--out", folder)
    return folder


@pytest.fixture(scope="module")
def dom(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The report as the browser understood it."""
    return open_in_browser(demo / "report.html", tmp_path_factory.mktemp("profile"), "--dump-dom")


def test_the_table_of_the_report_ranks_the_policies_as_the_command_does(demo: Path, dom: str) -> None:
    [log] = demo.glob("*.csv")
    result = json.loads(run_podium("compare", log, "--json"))
    ranking = [policy["name"] for policy in sorted(result["policies"], key=lambda policy: policy["rank"])]
    assert len(ranking) == 5

    orders = []
    for table in Page(dom).tables:
        named = [[cell.strip() for cell in row if cell.strip() in ranking] for row in table]
        orders.append([cells[0] for cells in named if cells])
    assert ranking in orders, f"no table lists {ranking}; the tables list {orders}"


def test_the_report_refers_to_no_remote_address(demo: Path, dom: str) -> None:
    for source in ((demo / "report.html").read_text(encoding="utf-8"), dom):
        assert [address for address in Page(source).addresses if REMOTE.match(address)] == []
        assert REMOTE_STYLE.findall(source) == []


def test_the_report_is_drawn(demo: Path, tmp_path: Path) -> None:
    picture = tmp_path / "report.png"
    open_in_browser(demo / "report.html", tmp_path / "profile", f"--screenshot={picture}")

    with Image.open(picture) as image:
        assert image.format == "PNG"
        assert image.size == (1000, 1400)
        colours = image.convert("RGB").getcolors(maxcolors=image.width * image.height)
        background, _ = max(colours)
    assert len(colours) > 10, "the page has hardly any colours"
    assert background < 0.995 * image.width * image.height, "the page is almost empty"
