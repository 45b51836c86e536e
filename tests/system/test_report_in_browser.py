"""The report in a real browser: quiet, without network, sortable, by keyboard, on a phone, in the dark, on paper."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

import podium
from podium.comparison.pair import Pair, interval_text
from podium.outputs.display import number, percent

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

pytestmark = pytest.mark.system

HOSTILE = [
    "<script>window.hit = 1</script>",
    "</script><img src=x onerror='window.hit = 2'>",
    '"><svg onload="window.hit = 3">',
    "' onfocus='window.hit = 4' autofocus='",
    "javascript:window.hit=5",
    "<!-- <style>body{display:none}</style>",
    "\u202egnp.exe",
    "שלום עולם",
    "👩‍🔬 🎉",
    "${window.hit = 6}`",
    "x" * 10_000,
]


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `podium demo` wrote."""
    folder = tmp_path_factory.mktemp("demo")
    subprocess.run([sys.executable, "-m", "podium", "demo", "--out", str(folder)], check=True, capture_output=True)
    return folder


@pytest.fixture(scope="module")
def reports(demo: Path, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Pages of several kinds: the demo, hostile labels, many policies, hardly anything."""
    folder = tmp_path_factory.mktemp("reports")
    rng = np.random.default_rng(0)
    rows = 60
    states = np.array([HOSTILE[k] for k in rng.integers(0, len(HOSTILE), rows)], dtype=object)
    actions = np.array([HOSTILE[k] for k in rng.integers(0, len(HOSTILE), rows)], dtype=object)
    log = podium.Log.from_columns({HOSTILE[1]: states, "action": actions, "reward": rng.normal(size=rows)})
    hostile = podium.compare(log, {name: rng.random(rows) for name in HOSTILE})
    many_log = podium.Log(rng.integers(0, 9, 90), np.arange(90) % 30, rng.normal(size=90))
    many = podium.compare(many_log, {f"policy number {k}": rng.dirichlet(np.ones(30), 90) for k in range(30)})
    flat = podium.Log([0, 0, 1], ["a", "b", "a"], [1.0, 1.0, 1.0])
    bare = podium.compare(flat, {"x": "constant:a", "y": "uniform"})
    return {
        "demo": demo / "report.html",
        "hostile": hostile.report(folder / "hostile.html", command=HOSTILE[1], source=HOSTILE[0]),
        "many": many.report(folder / "many.html"),
        "bare": bare.report(folder / "bare.html"),
    }


def opened(browser: Browser, path: Path, **options: Any) -> tuple[Page, list[str]]:
    """The page, and what went wrong with it: errors, console messages, requests for anything but itself."""
    page = browser.new_context(**options).new_page()
    wrong: list[str] = []
    page.on("pageerror", lambda error: wrong.append(f"error: {error}"))
    page.on("console", lambda message: wrong.append(f"console: {message.text}"))
    page.on("dialog", lambda dialog: (wrong.append(f"dialog: {dialog.message}"), dialog.dismiss()))
    page.on("request", lambda request: wrong.append(request.url) if request.url != path.as_uri() else None)
    page.goto(path.as_uri())
    return page, wrong


KINDS = ["demo", "hostile", "many", "bare"]
PHONE: dict[str, Any] = {"viewport": {"width": 375, "height": 700}}


@pytest.mark.parametrize("kind", KINDS)
def test_it_opens_quietly_and_asks_for_nothing(browser: Browser, reports: dict[str, Path], kind: str) -> None:
    page, wrong = opened(browser, reports[kind])
    assert page.locator("h1").inner_text()
    assert page.evaluate("window.hit === undefined")
    for button in page.locator(".matrix button").all()[:6]:
        button.click()
        button.hover()
    assert page.evaluate("window.hit === undefined")
    assert wrong == []


def test_it_ranks_as_the_command_does(browser: Browser, demo: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "podium", "compare", str(demo / "log.csv"), "--json"],
        check=True, capture_output=True, text=True,
    )  # fmt: skip
    ranking = [policy["name"] for policy in json.loads(done.stdout)["policies"]]
    page, _ = opened(browser, demo / "report.html")
    assert page.locator(".forest .who").all_inner_texts() == ranking
    assert page.locator("#ranking tbody tr td:nth-child(2)").all_inner_texts() == ranking


def test_tables_sort_by_number_and_by_name(browser: Browser, demo: Path) -> None:
    page, _ = opened(browser, demo / "report.html")
    table = page.locator("#pairs .sortable table")
    head = table.locator("th", has_text="difference")

    def column(n: int) -> list[str]:
        return table.locator(f"tbody tr td:nth-child({n})").all_inner_texts()

    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "ascending"
    numbers = [float(text) for text in column(4)]
    assert numbers == sorted(numbers)
    head.get_by_role("button").click()
    assert head.get_attribute("aria-sort") == "descending"
    assert [float(text) for text in column(4)] == sorted(numbers, reverse=True)
    table.locator("th").first.get_by_role("button").click()
    assert column(1) == sorted(column(1))
    assert head.get_attribute("aria-sort") is None


def shown(pair: Pair) -> tuple[str, str, str]:
    """The difference, the interval and the probability of a pair as the report prints them."""
    return number(pair.difference), interval_text(pair.interval), percent(pair.p_better)


def test_a_pair_opens_by_click_and_turns_with_its_cell(browser: Browser, demo: Path) -> None:
    page, _ = opened(browser, demo / "report.html")
    compared = podium.compare(podium.read_log(demo / "log.csv"))
    panel = page.locator("#pair")
    for a, b in (("call_over_65", "personalised"), ("personalised", "call_over_65")):
        difference, interval, probability = shown(compared.pair(a, b))
        page.get_by_label(f"{a} against {b}: cannot tell, P(better) {probability}").click()
        assert panel.locator("h3").inner_text() == f"{a} against {b} ○ cannot tell"
        assert f"Difference {difference} in reward, 95% interval {interval}" in panel.inner_text()
        assert f"with probability {probability}" in panel.inner_text()
        assert "row 17" in panel.inner_text()
    assert page.locator(".matrix button[aria-pressed=true]").count() == 1


def test_values_show_on_hover_and_leave_on_escape(browser: Browser, demo: Path) -> None:
    page, _ = opened(browser, demo / "report.html")
    tip = page.locator("#tip")
    page.locator(".forest .strip").first.hover()
    assert tip.is_visible()
    difference, interval, _ = shown(podium.compare(podium.read_log(demo / "log.csv")).pair("call_over_65", "current"))
    assert f"call_over_65 − current: {difference}, 95% interval {interval}" in tip.inner_text()
    page.keyboard.press("Escape")
    assert not tip.is_visible()


def test_everything_can_be_reached_by_keyboard(browser: Browser, demo: Path) -> None:
    page, _ = opened(browser, demo / "report.html")
    focused = "document.activeElement"
    page.keyboard.press("Tab")
    assert page.evaluate(f"{focused}.textContent") == "Skip to the ranking"
    assert page.evaluate(f"{focused}.getBoundingClientRect().left") >= 0
    page.keyboard.press("Enter")
    assert page.evaluate("location.hash") == "#ranking"
    for _ in range(40):
        page.keyboard.press("Tab")
        if page.evaluate(f"{focused}.closest('.matrix') !== null"):
            break
    assert page.evaluate(f"getComputedStyle({focused}).outlineStyle") == "solid"
    before = page.locator("#pair h3").inner_text()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("Enter")
    assert page.locator("#pair h3").inner_text() != before
    assert page.locator(".matrix button[tabindex='0']").count() == 1  # one stop, whatever the number of pairs
    page.keyboard.press("Tab")
    assert page.evaluate(f"{focused}.closest('.matrix') === null")
    summary = page.locator("summary").first
    summary.focus()
    page.keyboard.press("Enter")
    assert summary.evaluate("e => e.parentElement.open")


@pytest.mark.parametrize("kind", KINDS)
def test_a_phone_never_scrolls_sideways(browser: Browser, reports: dict[str, Path], kind: str) -> None:
    page, wrong = opened(browser, reports[kind], **PHONE)
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    assert page.evaluate("document.documentElement.scrollWidth") == 375
    assert wrong == []


def test_the_dark_is_dark_and_paper_is_white(browser: Browser, demo: Path) -> None:
    page, _ = opened(browser, demo / "report.html", color_scheme="dark")
    background = "getComputedStyle(document.body).backgroundColor"
    assert max(colour(page.evaluate(background))) < 50
    page.emulate_media(media="print")
    assert min(colour(page.evaluate(background))) == 255


def colour(text: str) -> list[int]:
    return [int(part) for part in text[text.index("(") + 1 : -1].split(",")[:3]]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_axe_finds_nothing_serious(browser: Browser, reports: dict[str, Path], kind: str, scheme: str) -> None:
    from axe_playwright_python.sync_playwright import Axe

    page, _ = opened(browser, reports[kind], color_scheme=scheme)
    page.evaluate("document.querySelectorAll('details').forEach(d => { d.open = true })")
    found = Axe().run(page).response["violations"]
    grave = [f"{v['id']}: {v['nodes'][0]['html'][:200]}" for v in found if v["impact"] in ("serious", "critical")]
    assert grave == []


def test_printing_opens_everything(browser: Browser, demo: Path, tmp_path: Path) -> None:
    page, _ = opened(browser, demo / "report.html")
    target = tmp_path / "report.pdf"
    page.pdf(path=target, format="A4")
    assert target.read_bytes().startswith(b"%PDF")
    page.evaluate("window.dispatchEvent(new Event('beforeprint'))")
    assert page.locator("details:not([open])").count() == 0
    page.evaluate("window.dispatchEvent(new Event('afterprint'))")
    assert page.locator("details[open]").count() == 0


def test_without_scripts_every_pair_is_still_there(browser: Browser, demo: Path) -> None:
    page, _ = opened(browser, demo / "report.html", java_script_enabled=False)
    assert page.locator("#pairs .sortable tbody tr").count() == 10
    assert "Scripts are off" in page.locator("noscript").inner_text()
