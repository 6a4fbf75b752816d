"""Scatter plots as SVG: panels side by side, both axes logarithmic and of the same unit."""

import math
from dataclasses import dataclass
from xml.sax.saxutils import escape

SIZE, MARGIN, FOOT = 280, 56, 36
COLOURS = {"others": "#9aa5b1", "first": "#d9822b", "own": "#106ba3"}


@dataclass
class Panel:
    title: str
    points: list  # (x, y), above 0; the first one is marked
    first: list  # positions of points that are marked too


def ticks(low, high):
    """1, 2 and 5 times powers of ten."""
    powers = range(math.floor(math.log10(low)), math.ceil(math.log10(high)) + 1)
    return [digit * 10.0 ** power for power in powers for digit in (1, 2, 5) if low <= digit * 10.0 ** power <= high]


def text(x, y, words, anchor="middle", turn=""):
    return f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}"{turn}>{escape(words)}</text>'


def stroke(x1, y1, x2, y2, look):
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" {look}/>'


def drawn(panel, left, xName, yName):
    values = [value for point in panel.points for value in point]
    low, high = min(values) / 1.1, max(values) * 1.1
    top, bottom, right = MARGIN / 2, MARGIN / 2 + SIZE, left + SIZE

    def place(value):
        return SIZE * math.log(value / low) / math.log(high / low)

    lines = [f'<rect x="{left}" y="{top}" width="{SIZE}" height="{SIZE}" fill="none" stroke="#555"/>',
             text(left + SIZE / 2, top - 8, panel.title), text(left + SIZE / 2, bottom + 30, xName),
             text(0, 0, yName, turn=f' transform="translate({left - 40:.1f} {top + SIZE / 2:.1f}) rotate(-90)"')]
    for value in ticks(low, high):
        x, y = left + place(value), bottom - place(value)
        lines += [stroke(x, bottom, x, bottom + 4, 'stroke="#555"'), text(x, bottom + 16, f"{value:g}"),
                  stroke(left - 4, y, left, y, 'stroke="#555"'), text(left - 7, y + 4, f"{value:g}", "end")]
    lines.append(stroke(left, bottom, right, top, 'stroke="#ccc"'))
    twice = 2 * min(y for _, y in panel.points)
    if twice < high:
        lines.append(stroke(left, bottom - place(twice), right, bottom - place(twice),
                            'stroke="#c23030" stroke-dasharray="4 3"'))
    for i, (x, y) in enumerate(panel.points):
        colour = COLOURS["first" if i in panel.first else "others"]
        ring = f' stroke="{COLOURS["own"]}" stroke-width="2"' if i == 0 else ""
        lines.append(f'<circle cx="{left + place(x):.1f}" cy="{bottom - place(y):.1f}" r="3.2" fill="{colour}"'
                     f'{ring}/>')
    return lines


def svg(panels, xName, yName, own, first, twice):
    """The picture's text; own, first, twice: what the marks are called."""
    width, height = MARGIN + len(panels) * (SIZE + MARGIN), SIZE + 1.5 * MARGIN + FOOT
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" width="{width}" height="{height:.0f}" '
             'font-family="sans-serif" font-size="11">', '<rect width="100%" height="100%" fill="#fff"/>']
    for i, panel in enumerate(panels):
        lines += drawn(panel, MARGIN + i * (SIZE + MARGIN), xName, yName)
    y = height - 12
    lines += [
        f'<circle cx="{MARGIN + 6}" cy="{y - 4:.1f}" r="3.2" fill="#fff" stroke="{COLOURS["own"]}" stroke-width="2"/>',
        text(MARGIN + 16, y, own, "start"),
        f'<circle cx="{MARGIN + 146}" cy="{y - 4:.1f}" r="3.2" fill="{COLOURS["first"]}"/>',
        text(MARGIN + 156, y, first, "start"),
        stroke(MARGIN + 280, y - 4, MARGIN + 304, y - 4, 'stroke="#c23030" stroke-dasharray="4 3"'),
        text(MARGIN + 310, y, twice, "start"),
    ]
    return "\n".join([*lines, "</svg>", ""])
