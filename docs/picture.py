"""Draws the README's picture from the bundled example: each policy against the current one, beside the truth.

.venv/bin/python docs/picture.py     # writes docs/demo.svg
"""

from pathlib import Path

import podium
from podium.data.files import write_text
from podium.worlds.simulator import DEFAULT_ROWS, DEFAULT_SEED, Programme

WIDTH, ROW, LEFT, RIGHT, TOP = 760, 46, 150, 190, 64
LOW, HIGH = -0.1, 0.5
DECIDED, OPEN, TRUTH = "#0072b2", "#8a8a8a", "#d55e00"
STYLE = """
text { font: 15px system-ui, sans-serif; fill: #222 }
.small { font-size: 13px } .grid { stroke: #ccc } .strong { font-weight: 600 }
@media (prefers-color-scheme: dark) { text { fill: #eee } .grid { stroke: #555 } }
"""


def x(value: float) -> float:
    return LEFT + (value - LOW) / (HIGH - LOW) * (WIDTH - LEFT - RIGHT)


def draw() -> str:
    programme = Programme()
    drawn = programme.draw(DEFAULT_ROWS, DEFAULT_SEED)
    result = podium.compare(podium.Log.from_columns(drawn.columns()))
    truth = programme.true_values()
    names = [name for name in result.ranking if name != "current"]
    height = TOP + ROW * len(names) + 46
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" role="img" '
        f'aria-label="Four policies against the current one: differences with 95% intervals">',
        f"<style>{STYLE}</style>",
        f'<text x="0" y="20" class="strong">Against the current policy, from {DEFAULT_ROWS} logged reminders</text>',
        '<text x="0" y="42" class="small">difference in value with 95% interval; diamond: the truth</text>',
    ]
    for tick in (-0.1, 0.0, 0.1, 0.2, 0.3, 0.4, 0.5):
        bottom = TOP + ROW * len(names)
        parts.append(f'<line x1="{x(tick):.1f}" x2="{x(tick):.1f}" y1="{TOP}" y2="{bottom}" class="grid"/>')
        label = "0" if tick == 0 else f"{tick:+.1f}"
        parts.append(f'<text x="{x(tick):.1f}" y="{bottom + 20}" text-anchor="middle" class="small">{label}</text>')
    for i, name in enumerate(names):
        y = TOP + ROW * (i + 0.5)
        pair = result.pair(name, "current")
        assert pair.interval is not None
        colour = OPEN if pair.verdict == "cannot tell" else DECIDED
        dash = ' stroke-dasharray="5 4"' if pair.verdict == "cannot tell" else ""
        low, high, middle = x(pair.interval.low), x(pair.interval.high), x(pair.difference)
        true = x(truth[name] - truth["current"])
        parts += [
            f'<text x="0" y="{y + 5:.1f}">{name}</text>',
            f'<line x1="{low:.1f}" x2="{high:.1f}" y1="{y}" y2="{y}" stroke="{colour}" stroke-width="5"{dash}/>',
            f'<circle cx="{middle:.1f}" cy="{y}" r="7" fill="{colour}"/>',
            f'<path d="M {true:.1f} {y - 15} l 6 7 l -6 7 l -6 -7 z" fill="{TRUTH}"/>',
            f'<text x="{WIDTH - RIGHT + 20}" y="{y + 5:.1f}" class="strong">{pair.verdict}</text>',
        ]
    return "\n".join([*parts, "</svg>\n"])


if __name__ == "__main__":
    write_text(Path(__file__).parent / "demo.svg", draw())
