"""Makes the pictures of the report and of the figures from the bundled example, with Chromium and matplotlib.

.venv/bin/python docs/screens.py     # writes docs/report*.webp and docs/figure-*.webp; needs chromium
"""

import io
import shutil
import tempfile
from pathlib import Path
from typing import Any

from PIL import Image
from playwright.sync_api import Browser, sync_playwright

import podium
from podium.worlds.simulator import DEFAULT_ROWS, DEFAULT_SEED, Programme

HERE = Path(__file__).parent
WIDE: dict[str, Any] = {"viewport": {"width": 1080, "height": 860}, "device_scale_factor": 1.5}
PHONE: dict[str, Any] = {"viewport": {"width": 375, "height": 760}, "device_scale_factor": 2}
FIGURES = {
    "overview": "light", "ranking": "light", "pairs": "light", "methods": "light", "spectrum": "light",
    "states": "light", "coverage": "light", "weights": "light", "drivers": "light", "plan": "dark",
}  # fmt: skip


def save(png: bytes, name: str) -> None:
    with Image.open(io.BytesIO(png)) as image:
        image.convert("RGB").save(HERE / f"{name}.webp", quality=82, method=6)


def shoot(browser: Browser, page_file: Path, name: str, target: str = "", **options: Any) -> None:
    """A picture of the window, with a section at its top."""
    context = browser.new_context(**options)
    page = context.new_page()
    page.goto(page_file.as_uri())
    if target:
        page.evaluate(f"document.querySelector('{target}').scrollIntoView({{behavior: 'instant'}})")
    save(page.screenshot(), name)
    context.close()


def main() -> None:
    columns = Programme().draw(DEFAULT_ROWS, DEFAULT_SEED).columns()
    result = podium.compare(podium.Log.from_columns(columns))
    for kind, style in FIGURES.items():
        output = io.BytesIO()
        result.plot(kind, style=style).savefig(output, format="png", dpi=110)
        save(output.getvalue(), f"figure-{kind}")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        page = result.report(Path(folder) / "report.html", command="podium compare log.csv", source="log.csv")
        browser = playwright.chromium.launch(executable_path=shutil.which("chromium"), args=["--no-sandbox"])
        shoot(browser, page, "report", **WIDE)
        shoot(browser, page, "report-pairs", "#pairs", **WIDE)
        shoot(browser, page, "report-trust", "#trust", **WIDE)
        shoot(browser, page, "report-dark", color_scheme="dark", **WIDE)
        shoot(browser, page, "report-phone", **PHONE)
        browser.close()


if __name__ == "__main__":
    main()
