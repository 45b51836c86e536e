"""Takes pictures of every step of the studio in a real browser; the best one is docs/studio.png.

python docs/studio_pictures.py FOLDER       # every step: desktop, phone, dark
python docs/studio_pictures.py              # docs/studio.png alone
"""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from PIL import Image
from playwright.sync_api import Browser, Page, sync_playwright

from podium.worlds.simulator import Programme

HERE = Path(__file__).parent
LOOKS = {
    "desktop": {"viewport": {"width": 1180, "height": 860}},
    "phone": {"viewport": {"width": 375, "height": 780}, "device_scale_factor": 2},
    "dark": {"viewport": {"width": 1180, "height": 860}, "color_scheme": "dark"},
}


@contextmanager
def studio() -> Iterator[str]:
    """A running studio; gives its address."""
    command = [sys.executable, "-m", "podium", "studio", "--no-browser", "--port", "0"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        address = next(found[0] for line in process.stdout if (found := re.search(r"http://\S+", line)))
        try:
            yield address
        finally:
            process.terminate()


def steps(page: Page, address: str) -> Iterator[str]:
    """Walk through the studio with the example; stops at every page."""
    page.set_default_timeout(300_000)
    page.goto(address)
    yield "1-start"
    page.get_by_role("button", name="Try the example").click()
    page.wait_for_url("**/columns")
    yield "2-columns"
    page.get_by_role("button", name="These are right").click()
    page.wait_for_url("**/policies")
    page.get_by_role("button", name="Add a constant policy").click()
    yield "3-policies"
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url("**/answer")
    show_report(page)
    yield "4-answer"
    page.get_by_label("Rank by").select_option("DRE")
    page.get_by_role("button", name="Update the answer").click()
    page.get_by_text("Against the answer before").wait_for()
    show_report(page)
    yield "5-changed"
    page.goto(address)
    page.get_by_label("Your log").set_input_files(
        {"name": "log.csv", "mimeType": "text/csv", "buffer": b"a,b\n1,2\n3\n"}
    )
    page.get_by_role("button", name="Read this file").click()
    page.get_by_role("alert").filter(has_text="row 2").wait_for()
    yield "6-bad-file"
    log = Programme().draw(4000, 1).columns()
    kept = {name: values for name, values in log.items() if not name.startswith("propensity")}
    lines = [",".join(kept), *(",".join(map(str, row)) for row in zip(*kept.values(), strict=True))]
    content = "\n".join(lines).encode()
    page.get_by_label("Try another file").set_input_files(
        {"name": "log.csv", "mimeType": "text/csv", "buffer": content}
    )
    page.get_by_role("button", name="Read this file").click()
    page.wait_for_url("**/columns")
    page.get_by_role("button", name="These are right").click()
    page.wait_for_url("**/policies")
    page.get_by_role("button", name="Estimate it").click()
    page.get_by_role("button", name="Do without").wait_for()
    yield "7-estimate"
    page.get_by_role("button", name="Compare").click()
    page.wait_for_url(re.compile("/(working|answer)$"))
    yield "8-working"
    page.wait_for_url("**/answer")
    show_report(page)
    yield "9-estimated"


def show_report(page: Page) -> None:
    """Wait until the frame holds the report."""
    page.frame_locator("iframe").locator("h1").wait_for()


def take_all(browser: Browser, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for look, options in LOOKS.items():
        with studio() as address:
            page = browser.new_page(**options)
            for step in steps(page, address):
                take_whole(page, folder / f"{step}-{look}.png")
            page.close()


def take_whole(page: Page, path: Path) -> None:
    """The whole page in a window that is as high: a frame draws nothing outside the window."""
    size = page.viewport_size
    assert size is not None
    page.wait_for_load_state()
    page.set_viewport_size({"width": size["width"], "height": page.evaluate("document.documentElement.scrollHeight")})
    page.wait_for_timeout(500)
    page.screenshot(path=path)
    page.set_viewport_size(size)


def take_best(browser: Browser, path: Path) -> None:
    """The answer, as the README shows it: few colours, so that it stays small."""
    with studio() as address:
        page = browser.new_page(viewport={"width": 1180, "height": 900})
        for step in steps(page, address):
            if step == "4-answer":
                page.screenshot(path=path)
        page.close()
    with Image.open(path) as image:
        image.convert("RGB").quantize(64).save(path, optimize=True)


if __name__ == "__main__":
    with sync_playwright() as playwright:
        chromium = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        if len(sys.argv) > 1:
            take_all(chromium, Path(sys.argv[1]))
        else:
            take_best(chromium, HERE / "studio.png")
        chromium.close()
