"""The studio in a real browser: from a dropped file to the downloads, by mouse and by keyboard, small and dark."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest

from podium.worlds.simulator import Programme

if TYPE_CHECKING:
    from playwright.sync_api import Browser, BrowserContext, Page

pytestmark = pytest.mark.system

PATIENCE = 300_000  # milliseconds; nothing here is a test of speed
EVIL = "<img src=x onerror='window.pwned=1'><script>window.pwned=1</script>"
DROP = """([selector, name, text]) => {
    const data = new DataTransfer();
    data.items.add(new File([text], name));
    for (const type of ["dragenter", "dragover", "drop"]) {
        document.querySelector(selector).dispatchEvent(
            new DragEvent(type, {dataTransfer: data, bubbles: true, cancelable: true}));
    }
}"""


class Running:
    """A studio in a process of its own."""

    def __init__(self) -> None:
        command = [sys.executable, "-m", "podium", "studio", "--no-browser", "--port", "0"]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
        assert self.process.stdout is not None
        self.address = next(m[0] for line in self.process.stdout if (m := re.search(r"http://\S+", line)))
        parts = urlsplit(self.address)
        self.home = f"{parts.scheme}://{parts.netloc}"

    def freeze_next_job(self) -> threading.Thread:
        """Stop the next job as soon as its process appears, so that there is time to look at it."""

        def watch() -> None:
            end = time.monotonic() + PATIENCE / 1000
            while time.monotonic() < end:
                found = [
                    int(pid)
                    for task in Path(f"/proc/{self.process.pid}/task").iterdir()
                    for pid in (task / "children").read_text().split()
                ]
                for pid in found:  # a child that has not yet become the worker must not be stopped
                    if "podium.studio.worker" in Path(f"/proc/{pid}/cmdline").read_text():
                        os.kill(pid, signal.SIGSTOP)
                        return
                time.sleep(0.002)

        thread = threading.Thread(target=watch)
        thread.start()
        return thread

    def close(self) -> None:
        self.process.terminate()
        self.process.communicate(timeout=60)


@pytest.fixture(scope="module")
def studio() -> Iterator[Running]:
    running = Running()
    yield running
    running.close()


class Seen:
    """What a browser did besides showing pages."""

    def __init__(self, context: BrowserContext, home: str) -> None:
        self.home = home
        self.complaints: list[str] = []
        self.foreign: list[str] = []
        context.on("console", lambda m: self.complaints.append(m.text) if m.type in ("error", "warning") else None)
        context.on("weberror", lambda e: self.complaints.append(str(e.error)))
        context.on("dialog", lambda d: (self.complaints.append(f"dialog {d.message}"), d.dismiss()))
        context.on("request", lambda r: self.foreign.append(r.url) if not self.own(r.url) else None)

    def own(self, url: str) -> bool:
        return url.startswith((self.home + "/", "data:", "blob:", "about:"))

    def check(self, *expected: str) -> None:
        assert [c for c in self.complaints if not any(e in c for e in expected)] == []
        assert self.foreign == []


def open_page(browser: Browser, studio: Running, **options: Any) -> tuple[Page, Seen]:
    context = browser.new_context(accept_downloads=True, **options)
    context.set_default_timeout(PATIENCE)
    seen = Seen(context, studio.home)
    page = context.new_page()
    page.goto(studio.address)
    assert page.url == studio.home + "/"
    return page, seen


def axe(page: Page) -> list[str]:
    """Serious faults of accessibility on the page that is shown."""
    page.evaluate((files("axe_playwright_python") / "axe.min.js").read_text(encoding="utf-8"))
    found = page.evaluate("() => axe.run(document, {iframes: false})")
    assert len(found["passes"]) > 10, "the checks did not run"
    return [
        f"{v['id']}: {n['html'][:150]}"
        for v in found["violations"]
        if v["impact"] in ("serious", "critical")
        for n in v["nodes"]
    ]


@pytest.fixture(scope="module")
def log(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("log") / "reminders.csv"
    Programme().draw(120, 3).write_csv(path)
    return path


def drop(page: Page, name: str, text: str) -> None:
    page.evaluate(DROP, ["[data-drop]", name, text])


def to_answer(page: Page) -> None:
    """From the start to the answer, with the example."""
    page.get_by_role("button", name="Try the example").click()
    page.wait_for_url("**/columns")
    page.get_by_role("button", name="These are right").click()
    page.wait_for_url("**/policies")
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**/answer")


def test_from_a_dropped_file_to_the_downloads(browser: Browser, studio: Running, log: Path, tmp_path: Path) -> None:
    page, seen = open_page(browser, studio)
    drop(page, "reminders.csv", log.read_text())
    page.wait_for_url("**/columns")
    assert page.get_by_label("Role of action").input_value() == "action"
    assert page.get_by_role("heading", level=1).inner_text() == "What is in each column?"
    page.get_by_label("Role of distance_km").select_option("ignore")
    page.get_by_role("button", name="These are right").click()
    page.wait_for_url("**/policies")
    page.get_by_label("Action", exact=True).select_option("letter")
    page.get_by_role("button", name="Add a constant policy").click()
    page.get_by_text("always letter").first.wait_for()
    page.get_by_role("button", name="Remove random").click()
    page.get_by_role("heading", name="5 policies").wait_for()
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**/answer")

    frame = page.frame_locator("iframe")
    frame.locator("h1").first.wait_for()
    assert "always letter" in frame.locator("body").inner_text()
    with page.expect_download() as taking:
        page.get_by_role("link", name="Report", exact=True).click()
    taking.value.save_as(tmp_path / "report.html")
    report = (tmp_path / "report.html").read_text(encoding="utf-8")
    assert report.startswith("<!doctype html>")
    with page.expect_download() as taking:
        page.get_by_role("link", name="JSON").click()
    taking.value.save_as(tmp_path / "result.json")
    result = json.loads((tmp_path / "result.json").read_text(encoding="utf-8"))
    assert {p["name"] for p in result["policies"]} == {
        "current", "sms_all", "call_over_65", "personalised", "always letter"
    }  # fmt: skip
    assert [p["name"] for p in result["policies"]] == page.locator(".ranking strong").all_inner_texts()

    page.get_by_label("Rank by").select_option("IPS")
    page.get_by_label("How sure must a claim be?").fill("99")
    page.get_by_role("button", name="Update the answer").click()
    page.get_by_text("Ranked by IPS instead of").wait_for()
    assert "--level 0.99" in page.locator("#command").inner_text()
    with page.expect_popup() as opening:
        page.get_by_role("link", name="Open it in a tab of its own").click()
    opening.value.locator("h1").first.wait_for()
    seen.check()
    page.context.close()


def test_a_bad_file_is_explained(browser: Browser, studio: Running) -> None:
    page, seen = open_page(browser, studio)
    drop(page, "bad.csv", "state,action,reward\n1,a,1\n2,b\n")
    alert = page.get_by_role("alert").filter(has_text="row 2 has 2 cells; the header has 3")
    alert.wait_for()
    assert page.locator("label", has_text="Try another file").is_visible()
    assert axe(page) == []
    seen.check("422")
    page.context.close()


def test_a_job_can_be_cancelled(browser: Browser, studio: Running) -> None:
    page, seen = open_page(browser, studio)
    page.get_by_role("button", name="Try the example").click()
    page.wait_for_url("**/columns")
    page.get_by_role("button", name="These are right").click()
    page.wait_for_url("**/policies")
    frozen = studio.freeze_next_job()
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**/working")
    frozen.join()
    page.get_by_role("heading", name="Comparing the policies").wait_for()
    assert axe(page) == []
    page.get_by_role("button", name="Cancel").click()
    page.get_by_role("alert").filter(has_text="You cancelled this.").wait_for()
    page.get_by_role("button", name="Update the answer").click()
    page.locator(".ranking").wait_for()
    seen.check("422")
    page.context.close()


def test_hostile_names_are_only_texts(browser: Browser, studio: Running) -> None:
    page, seen = open_page(browser, studio)
    name = EVIL.replace("=", "").replace("/", "")
    rows = "".join(f'"{EVIL}{i % 3}","{EVIL}{i % 2}",{i % 5},0.5,0.3\n' for i in range(40))
    drop(page, f"{EVIL.replace('/', '')}.csv", f'"{EVIL}","action",reward,"pi_{EVIL}",pi_b\n{rows}')
    page.wait_for_url("**/columns")
    page.get_by_role("button", name="These are right").click()
    page.wait_for_url("**/policies")
    page.locator("#name-uniform").fill(name)
    page.get_by_role("button", name="Add the uniform policy").click()
    page.get_by_text(name).first.wait_for()
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**/answer")
    page.frame_locator("iframe").locator("h1").first.wait_for()
    assert name in page.locator(".ranking").inner_text()
    assert page.evaluate("window.pwned") is None
    assert all(frame.evaluate("window.pwned") is None for frame in page.frames)
    assert page.locator("main img").count() == 0
    seen.check()
    page.context.close()


def press_until(page: Page, wanted: str, key: str = "Tab", most: int = 120) -> None:
    """Press a key until the element of this name has the focus, and see that the focus can be seen."""
    for _ in range(most):
        page.keyboard.press(key)
        name = page.evaluate("(document.activeElement.id || document.activeElement.innerText || '').trim()")
        if name == wanted:
            outline = page.evaluate("getComputedStyle(document.activeElement).outlineStyle")
            assert outline not in ("none", ""), f"the focus on {wanted} cannot be seen"
            return
    pytest.fail(f"the keyboard does not reach {wanted}")


def test_the_keyboard_is_enough(browser: Browser, studio: Running) -> None:
    page, seen = open_page(browser, studio)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.innerText") == "Skip to the content"
    press_until(page, "Try the example")
    page.keyboard.press("Enter")
    page.wait_for_url("**/columns")
    press_until(page, "role-1")
    page.keyboard.press("End")  # the last role: leave out
    assert page.get_by_label("Role of age").input_value() == "ignore"
    press_until(page, "These are right")
    page.keyboard.press("Enter")
    page.wait_for_url("**/policies")
    press_until(page, "Compare")
    page.keyboard.press("Space")
    page.wait_for_url("**/answer")
    press_until(page, "Report")
    with page.expect_download() as taking:
        page.keyboard.press("Enter")
    assert taking.value.suggested_filename == "report.html"
    seen.check()
    page.context.close()


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_every_page_is_accessible_and_fits_a_phone(browser: Browser, studio: Running, scheme: Any) -> None:
    page, seen = open_page(browser, studio, viewport={"width": 375, "height": 700}, color_scheme=scheme)

    def look(what: str) -> None:
        wide = page.evaluate("document.documentElement.scrollWidth")
        assert wide <= 375, f"{what} is {wide} pixels wide"
        paper = page.evaluate("getComputedStyle(document.body).backgroundColor")
        red = int(re.findall(r"\d+", paper)[0])
        assert (red < 60) == (scheme == "dark"), f"{what} is {paper}"
        assert axe(page) == [], what

    look("start")
    page.get_by_role("button", name="Try the example").click()
    page.wait_for_url("**/columns")
    look("columns")
    page.get_by_role("button", name="These are right").click()
    page.wait_for_url("**/policies")
    look("policies")
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**/answer")
    look("answer")
    page.goto(studio.home + "/nothing")
    look("error")
    seen.check("404")
    page.context.close()


def test_two_browsers_do_not_see_each_other(browser: Browser, studio: Running) -> None:
    first, _ = open_page(browser, studio)
    second, _ = open_page(browser, studio)
    first.get_by_role("button", name="Try the example").click()
    first.wait_for_url("**/columns")
    second.goto(first.url)
    second.get_by_text("There is no such log here.").wait_for()
    first.goto(studio.home)
    assert first.get_by_role("link", name="example.csv").is_visible()
    second.goto(studio.home)
    assert not second.get_by_role("link", name="example.csv").is_visible()
    first.context.close()
    second.context.close()


def test_the_path_works_without_scripts(browser: Browser, studio: Running, log: Path) -> None:
    page, seen = open_page(browser, studio, java_script_enabled=False)
    page.locator("input[type=file]").set_input_files(log)
    page.get_by_role("button", name="Read this file").click()
    page.wait_for_url("**/columns")
    page.get_by_role("button", name="These are right").click()
    page.wait_for_url("**/policies")
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**/answer")
    assert page.locator(".ranking li").count() == 5
    seen.check()
    page.context.close()
