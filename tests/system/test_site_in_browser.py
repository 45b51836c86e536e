"""The documentation site, built strictly and opened from its folder in a real browser, without a network."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

pytestmark = pytest.mark.system

ROOT = Path(__file__).parents[2]
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--virtual-time-budget=10000")
LOADS = re.compile(r"""<(?:script|link|img|iframe|source)\b[^>]*?\b(?:src|href)=["']?((?:https?:)?//[^"' >]+)""")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(
        command, cwd=ROOT, env={**os.environ, "NO_MKDOCS_2_WARNING": "1"}, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return folder


def rendered(chromium: str, page: Path) -> str:
    """The page after its scripts have run."""
    command = [chromium, *FLAGS, "--dump-dom", page.as_uri()]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, check=True).stdout


def test_no_page_loads_anything_from_the_network(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 20
    assert {str(page): found for page in pages if (found := LOADS.findall(page.read_text(encoding="utf-8")))} == {}
    assert "url(http" not in "".join(path.read_text(encoding="utf-8") for path in site.rglob("*.css"))


def test_the_first_page_renders_from_the_folder(site: Path, chromium: str) -> None:
    shown = rendered(chromium, site / "index.html")
    assert LOADS.findall(shown) == []
    assert 'class="js' in shown
    assert "<h1" in shown
    assert "Start in five minutes" in shown
    # The search runs in our frame, since browsers refuse workers to a page from a folder.
    assert re.search(r"<iframe[^>]*hidden", shown)


def test_the_reference_holds_signatures_formulas_and_options(site: Path) -> None:
    reference = (site / "reference.html").read_text(encoding="utf-8")
    assert 'id="podium.comparison.compare.compare"' in reference
    assert "the logged interactions" in reference
    assert "sum_a rhat(s_n, a)" in reference
    command = (site / "command.html").read_text(encoding="utf-8")
    assert 'id="podium-compare"' in command
    assert "--lower-is-better" in command
